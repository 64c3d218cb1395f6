package target_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
	"github.com/fdengine/fullduplex/jobs/submit"
	"github.com/fdengine/fullduplex/jobs/target"
)

func TestListsAndTubesTakeJobsByteForByte(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	b := testserver.StartBeanstalkd(t)
	s.Text("RPUSH", "in", "somebody else's, from before")
	in := mixedJobs(5000)
	want := map[string]int{}
	for line := range strings.SplitSeq(strings.TrimSuffix(in, "\r\n"), "\r\n") {
		want[line]++
	}
	for name, tc := range map[string]struct {
		spec string
		jobs func() map[string]int
	}{
		"list": {listURL(s, "in"), func() map[string]int {
			jobs := listJobs(t, s, "in")
			delete(jobs, "somebody else's, from before")
			return jobs
		}},
		"tube": {tubeURL(b, "in"), func() map[string]int { return tubeJobs(t, b, "in") }},
	} {
		t.Run(name, func(t *testing.T) {
			a, v := submitAll(t, open(t, tc.spec, target.Options{ReadBack: true}), in)
			require.EqualValues(t, 5000, a.Answered)
			require.Zero(t, a.Failed)
			require.Equal(t, submit.Verdict{}, v, "what was there before is not read back")
			require.Equal(t, want, tc.jobs())
		})
	}
}

func TestABodyCanBeTheWholeJob(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	b := testserver.StartBeanstalkd(t)
	in := "{\"id\":\"\\u00e4 \\\"1\\\"\",\"queue\":\"q<&>\",\"payload\":{\"a\": [1, \"\\u00e4\"]}}\n{\"payload\":null}\n"
	for name, tc := range map[string]struct {
		spec string
		jobs func() map[string]int
	}{
		"list": {listURL(s, "in") + "&body=job", func() map[string]int { return listJobs(t, s, "in") }},
		"tube": {tubeURL(b, "in") + "?body=job&priority=5&ttr=100s", func() map[string]int { return tubeJobs(t, b, "in") }},
	} {
		t.Run(name, func(t *testing.T) {
			a, v := submitAll(t, open(t, tc.spec, target.Options{ReadBack: true}), in)
			require.EqualValues(t, 2, a.Answered)
			require.Equal(t, submit.Verdict{}, v)
			got := map[string]string{}
			for body := range tc.jobs() {
				var job struct {
					ID, Queue string
					Payload   json.RawMessage
				}
				require.NoError(t, json.Unmarshal([]byte(body), &job))
				got[job.ID+" "+job.Queue] = string(job.Payload)
			}
			require.Equal(t, map[string]string{"ä \"1\" q<&>": `{"a": [1, "\u00e4"]}`, "t:2 default": "null"}, got)

			r, err := submit.New(submit.Options{Hopeless: func(err error) bool { return errors.Is(err, target.ErrBody) }})
			require.NoError(t, err)
			plain, err := r.Run(context.Background(), strings.NewReader("a plain line\n"), open(t, tc.spec, target.Options{}))
			require.ErrorIs(t, err, target.ErrBody)
			require.EqualValues(t, 1, plain.NotSent)
		})
	}
}

func TestAJobLargerThanTheServerTakesIsNotSent(t *testing.T) {
	b := testserver.StartBeanstalkd(t, "-z", "100")
	to := open(t, tubeURL(b, "in"), target.Options{})
	r, err := submit.New(submit.Options{})
	require.NoError(t, err)
	in := strings.Repeat("x", 100) + "\n" + strings.Repeat("y", 101) + "\n"
	a, err := r.Run(context.Background(), strings.NewReader(in), to)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 1}, []int64{a.Answered, a.NotSent})
	require.Equal(t, map[string]int{strings.Repeat("x", 100): 1}, tubeJobs(t, b, "in"))
}

func TestATubeThatWasNotMarkedCannotBeReadBack(t *testing.T) {
	b := testserver.StartBeanstalkd(t)
	to := open(t, tubeURL(b, "in"), target.Options{})
	require.ErrorIs(t, to.ReadBack(context.Background(), nil), target.ErrNoMark)
}

func TestAMarkOfAnEarlierRunIsWhereTheReadBackBegins(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	b := testserver.StartBeanstalkd(t)
	specs := []string{streamURL(s, "s"), listURL(s, "l"), tubeURL(b, "t")}
	o := target.Options{ReadBack: true}
	submitted(t, openAll(t, specs, o), numbered(100))
	first := openAll(t, specs, o)
	submitted(t, first, numbered(200))
	o.Mark = func(name string) string {
		for _, p := range first.Parts() {
			if p.Name == name {
				return p.Mark
			}
		}
		return ""
	}
	found := 0
	require.NoError(t, openAll(t, specs, o).ReadBack(context.Background(), func(_, _, _ []byte) { found++ }))
	require.Equal(t, 200, found)
}

// hashes are the hashes of payloads, and how often each is there.
type hashes map[uint64]int

func (h hashes) add(b []byte) { h[xxhash.Sum64(b)]++ }

// The jobs of real webhooks, 0.6 to 27 KB each, through every kind of target and through several at once, compared
// with the file by hash.
func TestWebhooksArriveAtEveryTargetAsTheyAre(t *testing.T) {
	data, err := os.ReadFile("../../../shared/data/webhooks.ndjson")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the webhooks are not at ../shared/data/webhooks.ndjson, seen from the checkout")
	}
	require.NoError(t, err)
	want := hashes{}
	n := 0
	for line := range bytes.Lines(data) {
		var job struct{ Payload json.RawMessage }
		require.NoError(t, json.Unmarshal(line, &job))
		want.add(job.Payload)
		n++
	}
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	b := testserver.StartBeanstalkd(t)
	b2 := testserver.StartBeanstalkd(t)
	for name, specs := range map[string][]string{
		"embedded": {"embedded:"},
		"stream":   {streamURL(s, "hooks")},
		"list":     {listURL(s, "hooks:list")},
		"jobs":     {listURL(s, escaped("hooks list")) + "&body=job"},
		"tube":     {tubeURL(b, "hooks")},
		"spread":   {streamURL(s, "part"), listURL(s, "part:list"), tubeURL(b, "part"), tubeURL(b2, "part")},
	} {
		t.Run(name, func(t *testing.T) {
			to := openAll(t, specs, target.Options{ReadBack: true})
			l := submit.NewLedger()
			r, err := submit.New(submit.Options{Ledger: l})
			require.NoError(t, err)
			a, err := r.Run(context.Background(), bytes.NewReader(data), to)
			require.NoError(t, err)
			require.EqualValues(t, n, a.Answered)
			require.Zero(t, a.Failed)
			got := hashes{}
			require.NoError(t, to.ReadBack(context.Background(), func(id, queue, payload []byte) {
				got.add(payload)
				l.Found(id, queue, payload)
			}))
			require.Equal(t, want, got)
			require.Equal(t, submit.Verdict{}, l.Verdict())
			require.Len(t, r.Parts(), len(specs))
			for i, p := range r.Parts() {
				require.Greater(t, p.Answered, int64(n/len(specs)/2), fmt.Sprint("each gets its share: ", specs[i]))
			}
		})
	}
}
