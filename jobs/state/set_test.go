package state

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestASetAgreesWithAPlainMapWhateverIsAddedAndRemoved(t *testing.T) {
	const size = 40
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var s Set
		model := map[int64]bool{}
		for range 60 {
			n := 1 + rnd.Int64N(size)
			switch rnd.IntN(3) {
			case 0:
				s.Remove(n)
				delete(model, n)
			default:
				last := n + rnd.Int64N(6) - 1 // also none at all
				s.Add(n, last)
				for i := n; i <= last; i++ {
					model[i] = true
				}
			}
			watermark := int64(0)
			for n := int64(1); n <= size+10; n++ {
				if model[n] != s.Has(n) {
					t.Fatalf("seed %d: line %d is %v in %v", seed, n, s.Has(n), s.r)
				}
				if model[n] && watermark == n-1 {
					watermark = n
				}
			}
			require.EqualValues(t, len(model), s.Count())
			require.Equal(t, watermark, s.Watermark())
			for i := 1; i < len(s.r); i++ {
				if s.r[i].First <= s.r[i-1].Last+1 {
					t.Fatalf("seed %d: ranges overlap or touch: %v", seed, s.r)
				}
			}
		}
	}
}

func TestACloneSharesNothing(t *testing.T) {
	var s Set
	s.Add(1, 3)
	c := s.Clone()
	s.Remove(2)
	c.Add(5, 5)
	require.Equal(t, []Range{{1, 1}, {3, 3}}, slices.Clone(s.Ranges()))
	require.Equal(t, []Range{{1, 3}, {5, 5}}, c.Ranges())
}
