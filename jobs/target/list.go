package target

import (
	"context"
	"fmt"
	"strconv"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/resp"
	"github.com/fdengine/fullduplex/redis"
)

// slice reads one piece of a list. Reading again does no harm.
type slice struct {
	patient
	found   func(element []byte)
	entries int
	bytes   int // of the reply
}

// DecodeReply implements fdengine.Command. The frame is walked where it lies: it may be large.
func (s *slice) DecodeReply(reply fdengine.Reply) error {
	r := resp.NewReader(reply.Frame)
	if t := r.Type(); t == resp.TypeError || t == resp.TypeBulkError {
		return s.Cmd.DecodeReply(reply)
	}
	n, err := r.Array()
	if err != nil {
		return err
	}
	s.entries, s.bytes = n, len(reply.Frame)
	for range n {
		b, err := r.Bytes()
		if err != nil {
			return err
		}
		s.found(b)
	}
	return nil
}

// readList calls found for each element behind the mark. Jobs that somebody takes from the list meanwhile or took
// before are not seen, and move those behind them.
func (t *server) readList(ctx context.Context, c *redis.Client, found func(id, queue, payload []byte)) error {
	at, err := strconv.ParseInt(t.mark, 10, 64)
	if err != nil {
		return fmt.Errorf("mark %q: want a length", t.mark)
	}
	s := slice{found: func(b []byte) { t.body.show(b, found) }}
	for count := int64(firstPage); ; count = int64(pageOf(s.entries, s.bytes)) {
		s.calm(t.patience)
		s.Reset("LRANGE").Arg(t.key).ArgInt(at).ArgInt(at + count - 1)
		if err := c.Do(ctx, &s); err != nil {
			return fmt.Errorf("from element %d: %w", at, err)
		}
		at += int64(s.entries)
		if int64(s.entries) < count {
			return nil
		}
	}
}
