package lanes_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/scripted"
	"github.com/fdengine/fullduplex/lanes"
)

// Covers: E-32
func TestEveryFieldOfStatsIsSummed(t *testing.T) {
	var a, b fdengine.Stats
	av, bv := reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()
	for i := range av.NumField() {
		switch f := av.Field(i); f.Kind() {
		case reflect.Int:
			f.SetInt(int64(i + 1))
			bv.Field(i).SetInt(100)
		case reflect.Uint64:
			f.SetUint(uint64(i + 1))
			bv.Field(i).SetUint(100)
		}
	}
	a.OldestAge, b.OldestAge = time.Second, time.Minute
	a.State, b.State = "running", "backoff"
	sum := lanes.Sum(a, b, a)
	sv := reflect.ValueOf(sum)
	for i := range sv.NumField() {
		f := sv.Field(i)
		switch f.Interface().(type) {
		case int:
			require.EqualValues(t, 2*(i+1)+100, f.Int(), sv.Type().Field(i).Name)
		case uint64:
			require.EqualValues(t, 2*(i+1)+100, f.Uint(), sv.Type().Field(i).Name)
		case time.Duration:
			require.Equal(t, time.Minute, sum.OldestAge)
		case string:
			require.Equal(t, "running/backoff", sum.State)
		default:
			t.Errorf("nobody sums %s", sv.Type().Field(i).Name)
		}
	}
	require.Equal(t, a, lanes.Sum(a))
}

// Covers: E-32
func TestTheStatsOfLanesAreThoseOfTheirEngines(t *testing.T) {
	bubble(t, setup{n: 3}, func(t *testing.T, r *rig) {
		for i := range 30 {
			require.NoError(t, r.Do(bg, of("k"+itoa(i), "t"+itoa(i))))
		}
		for range 4 {
			require.Error(t, r.Do(bg, &scripted.Cmd{EncodePanic: "x"}))
		}
		var each []fdengine.Stats
		var accepted uint64
		for i, e := range r.Engines() {
			require.Same(t, r.engines[i], e)
			each = append(each, e.Stats())
			accepted += e.Stats().Accepted
			require.Less(t, e.Stats().Accepted, uint64(30))
		}
		sum := r.Stats()
		require.Equal(t, lanes.Sum(each...), sum)
		require.EqualValues(t, 30, accepted)
		require.EqualValues(t, 30, sum.Accepted)
		require.EqualValues(t, 4, sum.Rejected)
		require.EqualValues(t, 3, sum.Sessions)
		require.Equal(t, "running", sum.State)
	})
}
