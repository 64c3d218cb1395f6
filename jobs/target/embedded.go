package target

import (
	"context"
	"errors"

	"github.com/alicebob/miniredis/v2"
)

// embedded is a stream on a server of this process, reached over loopback like any other.
type embedded struct {
	*server
	mini *miniredis.Miniredis
}

func openEmbedded(ctx context.Context, o Options) (*embedded, error) {
	mini := miniredis.NewMiniRedis()
	if err := mini.StartAddr("127.0.0.1:0"); err != nil {
		return nil, err
	}
	if o.IDs == IDsAuto {
		o.IDs = IDsNever // its scripts are slow, and it forgets everything with this process anyhow
	}
	s, _, err := parseSpec("redis://" + mini.Addr())
	if err == nil {
		var t *server
		if t, err = openServer(ctx, s, o); err == nil {
			t.name = "embedded:"
			return &embedded{server: t, mini: mini}, nil
		}
	}
	mini.Close()
	return nil, errors.Join(errors.New("embedded server"), err)
}

// Close implements Target.
func (e *embedded) Close() error {
	err := e.server.Close()
	e.mini.Close()
	return err
}
