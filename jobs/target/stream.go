package target

import (
	"context"
	"fmt"

	"github.com/fdengine/fullduplex/redis"
)

// A read-back asks for pages of about pageBytes: large, since a server may walk the stream from its start to find
// the first entry of each, but bounded, whatever the size of a job.
const (
	firstPage = 1_000
	mostPage  = 200_000
	pageBytes = 16 << 20
)

// readStream calls found for each entry behind the mark.
func (t *server) readStream(ctx context.Context, c *redis.Client, found func(id, queue, payload []byte)) error {
	p := page{patient: patient{bound: t.patience}, last: t.mark, found: found}
	for count := firstPage; ; count = p.nextCount() {
		p.forward(t.key, p.last, count)
		if err := c.Do(ctx, &p); err != nil {
			return fmt.Errorf("behind %s: %w", p.last, err)
		}
		if p.entries < count {
			return nil
		}
	}
}
