package contend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	peer "github.com/beanstalkd/go-beanstalk"

	"github.com/fdengine/fullduplex/beanstalkd"
)

const jobTTR = time.Minute

func beanstalkContenders() []Contender {
	return []Contender{
		{Name: "raw puts", Setting: "encoded before, one write and the reads for all callers", Group: Limit, Server: "beanstalkd", Open: openRawPuts},
		{Name: "fullduplex put", Setting: "beanstalkd.Client, defaults, one Put per caller used again", Group: Ours, Server: "beanstalkd", Open: openPuts},
		{Name: "go-beanstalk", Setting: "one Conn for all callers, which pipelines", Group: Peer, Server: "beanstalkd", Default: true, Open: openGoBeanstalk},
	}
}

func body() []byte { return bytes.Repeat([]byte("j"), bodySize) }

var errNoID = errors.New("a put was answered without an id")

type puts struct{ *beanstalkd.Client }

func openPuts(ctx context.Context, t Target) (Client, error) {
	c, err := beanstalkd.New(beanstalkd.Options{Addr: t.Addr})
	if err != nil {
		return nil, err
	}
	if err := c.Ping(ctx); err != nil {
		_ = c.Close()
		<-c.Done()
		return nil, err
	}
	return puts{c}, nil
}

// Calls implements Counting.
func (p puts) Calls() (writes, reads int64) {
	s := p.Usage().Engine
	return int64(s.Writes), int64(s.Reads)
}

func (p puts) Close() error {
	err := p.Client.Close()
	<-p.Done()
	return err
}

func (p puts) Caller(int) Caller {
	return &putCaller{c: p.Client, put: beanstalkd.Put{Body: body(), TTR: jobTTR}}
}

type putCaller struct {
	c   *beanstalkd.Client
	put beanstalkd.Put
}

func (c *putCaller) Call() error {
	if err := c.c.Do(context.Background(), &c.put); err != nil {
		return err
	}
	if c.put.ID == 0 {
		return errNoID
	}
	return nil
}

type goBeanstalk struct{ c *peer.Conn }

func openGoBeanstalk(ctx context.Context, t Target) (Client, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, err
	}
	return goBeanstalk{peer.NewConn(c)}, nil
}

func (g goBeanstalk) Close() error { return g.c.Close() }
func (g goBeanstalk) Caller(int) Caller {
	return &goBeanstalkCaller{peer.NewTube(g.c, "default"), body()}
}

type goBeanstalkCaller struct {
	tube *peer.Tube
	body []byte
}

func (c *goBeanstalkCaller) Call() error {
	id, err := c.tube.Put(c.body, 0, 0, jobTTR)
	if err == nil && id == 0 {
		err = errNoID
	}
	return err
}

// rawPuts is raw for jobs.
type rawPuts struct{ conn net.Conn }

func openRawPuts(ctx context.Context, t Target) (Client, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, err
	}
	return rawPuts{c}, nil
}

func (r rawPuts) Close() error      { return r.conn.Close() }
func (r rawPuts) Caller(int) Caller { return r.All(1) }

func (r rawPuts) All(depth int) Caller {
	one := fmt.Appendf(nil, "put 0 0 %d %d\r\n%s\r\n", int(jobTTR.Seconds()), bodySize, body())
	return &rawPutsBulk{conn: r.conn, req: bytes.Repeat(one, depth), depth: depth, buf: make([]byte, 64<<10)}
}

type rawPutsBulk struct {
	conn  net.Conn
	req   []byte
	buf   []byte
	depth int
}

func (b *rawPutsBulk) Call() error {
	if _, err := b.conn.Write(b.req); err != nil {
		return err
	}
	held, lines := 0, 0
	for lines < b.depth {
		n, err := b.conn.Read(b.buf[held:])
		if err != nil {
			return err
		}
		rest := b.buf[:held+n]
		for {
			line, after, whole := bytes.Cut(rest, []byte("\r\n"))
			if !whole {
				break
			}
			if !bytes.HasPrefix(line, []byte("INSERTED ")) {
				return wrong("raw puts", string(line))
			}
			rest = after
			lines++
		}
		held = copy(b.buf, rest)
	}
	if held > 0 {
		return io.ErrUnexpectedEOF
	}
	return nil
}
