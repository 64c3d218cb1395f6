package pool_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/pool"
)

// BenchmarkLeaseAndPut lends one idle loopback connection over and over: a lock, a peek, a lock.
func BenchmarkLeaseAndPut(b *testing.B) {
	addr := listen(b, drain)
	p := newPool(b, pool.Options{Addr: addr})
	p.Put(lease(b, p))
	b.ReportAllocs()
	for b.Loop() {
		c, err := p.Lease(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		p.Put(c)
	}
	require.Equal(b, uint64(1), p.Stats().Dials)
}
