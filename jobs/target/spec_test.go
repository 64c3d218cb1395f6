package target_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

func TestOpenSaysWhatIsWrongAndNeverAPassword(t *testing.T) {
	for name, tc := range map[string]struct{ spec, want string }{
		"empty":             {"", "want embedded:, redis://"},
		"other scheme":      {"kafka://u:secret@h/x", "target 1 (kafka://h/x): want embedded:"},
		"more behind it":    {"embedded:x", "nothing may follow"},
		"not a URL":         {"redis://u:secret@h:port/0", "target 1: cannot be parsed"},
		"a port":            {"redis://u:secret@h:99999/0", `target 1 (redis://h:99999/0): pool: Addr "h:99999" has port "99999", it must be 1 to 65535`},
		"a tube's port":     {"beanstalk://h:99999/t", `port "99999", it must be 1 to 65535`},
		"no port":           {"redis://u:secret@h:0", `port "0"`},
		"a useless one":     {"redis://h?max_retries=3", "unknown parameter max_retries; known are stream, list, body, client_name"},
		"empty stream":      {"redis://u:secret@127.0.0.1:1/0?stream=", "stream has no value"},
		"stream twice":      {"redis://u:secret@127.0.0.1:1/0?stream=a&stream=b", "stream is given twice"},
		"stream and list":   {"redis://u:secret@127.0.0.1:1/0?stream=a&list=b", "both given"},
		"unknown parameter": {"redis://u:secret@127.0.0.1:1/0?steam=x", "unknown parameter steam"},
		"no such database":  {"redis://u:secret@127.0.0.1:1/x", "not a number"},
		"body of a stream":  {"redis://u:secret@127.0.0.1:1/0?body=job", "a stream has fields"},
		"unknown body":      {"redis://u:secret@127.0.0.1:1/0?list=l&body=soul", `body is "soul"`},
		"no tube":           {"beanstalk://127.0.0.1:1/", "no tube"},
		"a bad tube":        {"beanstalk://127.0.0.1:1/a/b c", "Tube"},
		"no host":           {"beanstalk:///t", "no host"},
		"users of a tube":   {"beanstalk://u:secret@127.0.0.1:1/t", "no users"},
		"a bad priority":    {"beanstalk://127.0.0.1:1/t?priority=-1", "priority"},
		"a bad delay":       {"beanstalk://127.0.0.1:1/t?delay=5", "delay"},
		"no time to run":    {"beanstalk://127.0.0.1:1/t?ttr=0s", `ttr is "0s": want a duration such as 90s, from 1s to `},
		"unknown of a tube": {"beanstalk://127.0.0.1:1/t?colour=red", "unknown parameter colour"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := target.Open(context.Background(), []string{tc.spec}, target.Options{})
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "secret")
			require.Equal(t, err, target.Check([]string{tc.spec}, target.Options{}), "found without connecting")
		})
	}
	err := target.Check([]string{"redis://h?list=a", "redis://u:p@h:6379/0?list=a", "nothing"}, target.Options{Retries: 1001, IDs: 9})
	for _, want := range []string{"redis://h:6379/0?list=a is given twice", "target 3: want embedded:", "Retries is 1001", "IDs is 9"} {
		require.ErrorContains(t, err, want)
	}
	err = target.Check([]string{
		"redis://a:1?list=l&stream=s&steam=x&body=soul&dial_timeout=fast", "embedded:", "beanstalk://u@b:99999/?ttr=0s&delay=-1s&priority=x&colour=red",
	}, target.Options{})
	for _, want := range []string{
		"target 1 (redis://a:1): stream and list are both given", "target 1 (redis://a:1): unknown parameter steam",
		`target 1 (redis://a:1): body is "soul"`, "target 1 (redis://a:1): redis: URL: dial_timeout is neither",
		"target 3 (beanstalk://b:99999/): beanstalkd knows no users", "target 3 (beanstalk://b:99999/): no tube", "target 3 (beanstalk://b:99999/): pool: Addr",
		`target 3 (beanstalk://b:99999/): ttr is "0s"`, `delay is "-1s"`, `priority is "x": want 0 to 4294967295`, "unknown parameter colour",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "target 2")
	require.True(t, target.NeedJSON([]string{"redis://h", "beanstalk://h/t?body=job"}))
	require.False(t, target.NeedJSON([]string{"redis://h?list=x", "beanstalk://h/t?body=payload", "nothing"}))
	require.ErrorContains(t, target.Check(nil, target.Options{}), "no target")
	_, err = target.ParseIDs("sometimes")
	require.ErrorContains(t, err, "sometimes")
}

func TestTargetsAreCalledByWhatDecidesWhereJobsGo(t *testing.T) {
	for spec, want := range map[string]string{
		"embedded:":                          "embedded:",
		"redis://u:p@h":                      "redis://h:6379/0?stream=jobs",
		"rediss://h:7/3?list=a%20b&body=job": "rediss://h:7/3?list=a+b&body=job",
		"redis://h/?db=2&stream=s":           "redis://h:6379/2?stream=s",
		"beanstalkd://h/t?priority=3&ttr=9s": "beanstalk://h:11300/t",
		"beanstalk://[::1]:7/t?body=job":     "beanstalk://[::1]:7/t?body=job",
	} {
		_, parts, _, err := target.Plan([]string{spec}, target.Options{})
		require.NoError(t, err)
		require.Equal(t, []target.Part{{Name: want}}, parts)
	}
}

// planned returns how many of n jobs each target would get, by name.
func planned(t *testing.T, n int, specs ...string) (per map[string]int64, of map[int64]string) {
	t.Helper()
	to, parts, bytes, err := target.Plan(specs, target.Options{})
	require.NoError(t, err)
	r, err := submit.New(submit.Options{})
	require.NoError(t, err)
	a, err := r.Run(context.Background(), strings.NewReader(numbered(n)), to)
	require.NoError(t, err)
	require.EqualValues(t, n, a.Answered)
	require.EqualValues(t, len(strings.ReplaceAll(numbered(n), "\n", "")), bytes.Load())
	per, of = map[string]int64{}, map[int64]string{}
	for i, p := range r.Parts() {
		per[parts[i].Name] = p.Accepted
	}
	for line := int64(1); line <= int64(n); line++ {
		of[line] = parts[to.Traits(submit.Job{Line: line}).Part].Name
	}
	return per, of
}

func TestJobsAreSpreadEvenlyAndMoveNoMoreThanTheyMust(t *testing.T) {
	const n = 30_000
	a, b, c := "beanstalk://h:1/t", "redis://h:2?list=l", "redis://h:3"
	per, three := planned(t, n, a, b, c)
	require.Len(t, per, 3)
	for name, got := range per {
		require.InDelta(t, n/3, got, n/30, name)
	}
	_, turned := planned(t, n, c, a, b)
	require.Equal(t, three, turned, "the order does not matter")
	_, two := planned(t, n, a, c)
	for line, was := range three {
		if was != "redis://h:2/0?list=l" {
			require.Equal(t, was, two[line], "only the jobs of the one that is gone move")
		}
	}
}

func TestAJobWithAnIDGoesWhereItsIDSaysWhateverItsLine(t *testing.T) {
	to, _, _, err := target.Plan([]string{"redis://h:1", "redis://h:2", "redis://h:3"}, target.Options{})
	require.NoError(t, err)
	parts := map[int]bool{}
	for i := range 50 {
		id := fmt.Append(nil, "id-", i)
		first := to.Traits(submit.Job{ID: id, Own: true, Line: 1})
		require.True(t, first.Once)
		require.Equal(t, first, to.Traits(submit.Job{ID: id, Own: true, Line: 99}))
		parts[first.Part] = true
		made := to.Traits(submit.Job{ID: id, Line: 1})
		require.Equal(t, made.Part, to.Traits(submit.Job{ID: []byte("renamed:1"), Line: 1}).Part)
		require.False(t, made.Once)
	}
	require.Len(t, parts, 3)
}
