package target

import (
	"context"
	"errors"

	"github.com/alicebob/miniredis/v2"
)

// embedded is a stream on a server of this process, reached over loopback like any other.
type embedded struct {
	*stream
	server *miniredis.Miniredis
}

func openEmbedded(ctx context.Context, o Options) (*embedded, error) {
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		return nil, err
	}
	s, err := openStream(ctx, "redis://"+server.Addr(), "jobs", o)
	if err != nil {
		server.Close()
		return nil, errors.Join(errors.New("embedded server"), err)
	}
	return &embedded{stream: s, server: server}, nil
}

// Close implements Target.
func (e *embedded) Close() error {
	err := e.stream.Close()
	e.server.Close()
	return err
}
