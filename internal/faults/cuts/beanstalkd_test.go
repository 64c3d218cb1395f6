package cuts

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/fdengine/fullduplex/beanstalkd"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/memnet"
)

// beanstalkServer stores jobs and shows any job that is asked for. A put is carried out by noting tube and body, so
// one that ends up in another tube than its own is seen.
type beanstalkServer struct{ ids map[int]string }

func (*beanstalkServer) next(buf []byte) (words []string, n int) {
	end := bytes.Index(buf, []byte("\r\n"))
	if end < 0 {
		return nil, 0
	}
	words, n = strings.Fields(string(buf[:end])), end+2
	if words[0] != "put" {
		return words, n
	}
	size, err := strconv.Atoi(words[4])
	if err != nil || len(buf) < n+size+2 {
		return nil, 0
	}
	return append(words, string(buf[n:n+size])), n + size + 2
}

func (d *beanstalkServer) handle(c *served, words []string) (reply string, greeted bool) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	switch words[0] {
	case "use":
		c.tube = words[1]
		return "USING " + c.tube + "\r\n", false
	case "list-tube-used":
		return "USING " + c.tube + "\r\n", true
	case "put":
		token := c.tube + "/" + words[5]
		c.ran = append(c.ran, token)
		id := 101 + len(d.ids)
		d.ids[id] = token
		return fmt.Sprintf("INSERTED %d\r\n", id), false
	case "peek":
		body := "job " + words[1]
		c.ran = append(c.ran, body)
		return fmt.Sprintf("FOUND %s %d\r\n%s\r\n", words[1], len(body), body), false
	}
	return "UNKNOWN_COMMAND\r\n", false
}

func beanstalkKit() kit {
	var server *beanstalkServer
	return kit{
		name: "beanstalkd",
		dialect: func() dialect {
			server = &beanstalkServer{ids: map[int]string{}}
			return server
		},
		build: func(net *memnet.Network, v variant) (client, *pipeline, error) {
			c, err := beanstalkd.New(beanstalkd.Options{Addr: "server", DialFunc: net.Dial, ManyTubes: true, Engine: engineOptions})
			return c, beanstalkCalls(v, server), err
		},
	}
}

func beanstalkCalls(v variant, server *beanstalkServer) *pipeline {
	put := func(name, tube string, replay bool) *call {
		make := func() *beanstalkd.Put {
			return &beanstalkd.Put{Body: []byte(name + "\r\n"), Tube: tube, Replay: replay}
		}
		p, token := make(), tube+"/"+name+"\r\n"
		return &call{name: name, cmd: p, replay: replay, tokens: []string{token}, own: func() error {
			return same(token, server.ids[int(p.ID)], nil) // read when the server has been waited for
		}, enc: encode(make())}
	}
	peek := func(id uint64) *call {
		cmd, token := beanstalkd.Peek(id), fmt.Sprint("job ", id)
		return &call{name: token, cmd: cmd, replay: true, tokens: []string{token}, own: func() error {
			got, body, err := cmd.Job()
			if err == nil && got != id {
				err = fmt.Errorf("peek %d showed job %d", id, got)
			}
			return same(token, string(body), err)
		}, enc: encode(beanstalkd.Peek(id))}
	}
	ghost, flow := put("ghost", "a", v.ghostReplay), put("flow", "b", v.flowReplay)
	ghost.role, flow.role = leaves, streams
	p := &pipeline{
		five:  []*call{peek(7), put("piece", "c", v.pieceReplay), ghost, flow, put("once", "a", false)},
		after: put("after", "d", true),
		next:  put("next", "b", true),
	}
	p.rotate(v.rotate)
	return p
}

var (
	_ client           = (*beanstalkd.Client)(nil)
	_ fdengine.Command = (*beanstalkd.Put)(nil)
)
