package main

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/testserver"
)

func TestBenchMeasuresEveryKindOfTarget(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	b := testserver.StartBeanstalkd(t)
	stream, list, tube := "redis://"+s.Addr()+"?stream=s", "redis://"+s.Addr()+"?list=l", "beanstalk://"+b.Addr()+"/t"
	for name, args := range map[string][]string{
		"stream":          {stream},
		"stream with ids": {stream, "--with-ids"},
		"list":            {list, "--size", "40"},
		"tube":            {tube, "--size", "9000"},
		"spread":          {stream, list, tube, "--with-ids"},
		"embedded":        {"embedded:"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := jobsub("", append([]string{"bench", "--quiet", "--json", "--jobs", "2000"}, args...)...)
			require.Zero(t, code, errs)
			var m measured
			require.NoError(t, json.Unmarshal([]byte(out), &m))
			require.EqualValues(t, 2000, m.Jobs)
			require.Zero(t, m.Open)
			require.Positive(t, m.Rate)
			require.Positive(t, m.P50)
			require.LessOrEqual(t, m.P50, m.P99)
			require.LessOrEqual(t, m.P99, m.Max)
			require.LessOrEqual(t, m.Max, m.Elapsed*11/10, "no job takes longer than all")
			require.NotZero(t, m.CPUPerJob)
			require.GreaterOrEqual(t, m.PerWrite, 1.0)
		})
	}
	require.Positive(t, s.Int("XLEN", "s"))
	v, err := s.Do("LRANGE", "l", "0", "0")
	require.NoError(t, err)
	require.Contains(t, v.([]any)[0], `{"n":`)
	require.Regexp(t, `^bench: jobs=10 open=0 size=512 elapsed=\S+ rate=\d+/s p50=\S+ p99=\S+ max=\S+ cpu_per_job=\S+ jobs_per_write=\S+\n$`,
		second(jobsub("", "bench", list, "--jobs", "10", "--quiet")))
}

func second(_ int, out, _ string) string { return out }

func TestABenchForSomeTimeEndsThen(t *testing.T) {
	begin := time.Now()
	code, out, errs := jobsub("", "bench", "embedded:", "--for", "300ms", "--rate", "1000", "--quiet", "--json")
	require.Zero(t, code, errs)
	var m measured
	require.NoError(t, json.Unmarshal([]byte(out), &m))
	require.Positive(t, m.Jobs)
	require.GreaterOrEqual(t, time.Since(begin), 300*time.Millisecond)
}

func TestBenchTellsAllFaultsAtOnce(t *testing.T) {
	code, out, errs := jobsub("", "bench", "ftp://x", "--jobs", "0", "--size", "3", "--window", "-1")
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "bench: jobs=0 open=0 ")
	for _, want := range []string{"--jobs is 0", "--size is 3", "--window is -1", "ftp://x"} {
		require.Contains(t, errs, want)
	}
	code, out, errs = jobsub("", "bench", "embedded:", "--json", "--for", "0s", "--jobs", "5", "--size", "big")
	require.Equal(t, exitFailed, code)
	for _, want := range []string{"--for is 0s", "--jobs and --for are both given", `--size is "big": want a whole number`} {
		require.Contains(t, errs, want)
	}
	var m measured
	require.NoError(t, json.Unmarshal([]byte(out), &m))
	require.Contains(t, m.Error, "--for is 0s")
	require.Equal(t, exitFailed, m.Exit)
	code, _, errs = jobsub("", "bench")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "requires at least 1 arg")
}

func TestGeneratedJobsHaveTheirSize(t *testing.T) {
	for _, own := range []bool{false, true} {
		g := newGenerator(3000, 100, own)
		lines, ids := 0, map[string]bool{}
		for in := bufio.NewScanner(g); in.Scan(); lines++ {
			payload := json.RawMessage(in.Bytes())
			if own {
				var job struct {
					ID, Queue string
					Payload   json.RawMessage
				}
				require.NoError(t, json.Unmarshal(in.Bytes(), &job))
				ids[job.ID] = true
				payload = job.Payload
			}
			require.Len(t, payload, 100)
			require.True(t, json.Valid(payload))
		}
		require.Equal(t, 3000, lines)
		require.Len(t, ids, map[bool]int{false: 0, true: 3000}[own])
	}
}

func TestQuantilesAreWithinTheWidthOfAClass(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var h histogram
	require.Zero(t, h.quantile(0.5))
	var all []time.Duration
	for range 20_000 {
		d := time.Duration(rnd.Int64N(1 << rnd.Int64N(40)))
		all = append(all, d)
		h.add(d)
	}
	slices.Sort(all)
	for _, q := range []float64{0.001, 0.1, 0.5, 0.9, 0.99, 1} {
		exact := all[int(q*float64(len(all))+0.999999)-1]
		got := h.quantile(q)
		require.GreaterOrEqual(t, got, exact)
		require.LessOrEqual(t, float64(got), float64(exact)*1.04+1)
	}
	h.add(1<<63 - 1)
	require.EqualValues(t, time.Duration(1<<63-1), h.quantile(1))
}

func TestADryRunConnectsToNothingAndSaysWhatWouldBeSent(t *testing.T) {
	nowhere := []string{"--to", "redis://u:secret@127.0.0.1:1?stream=a", "--to", "beanstalk://127.0.0.1:1/t"}
	in := file(t, "{\"id\":\"1\",\"payload\":10}\n\n{oops\n{\"payload\":200}\n{\"id\":\"3\",\"payload\":3}\n")
	statefile := filepath.Join(t.TempDir(), "state")
	code, out, errs := jobsub("", append([]string{"submit", "--dry-run", "--json", "--resume", statefile, in}, nowhere...)...)
	require.Zero(t, code, errs)
	require.NoFileExists(t, statefile)
	require.Contains(t, errs, "line 3: ")
	var p planned
	require.NoError(t, json.Unmarshal([]byte(out), &p))
	require.Equal(t, []int64{3, 0, 0, 1, 5, 6}, []int64{p.Jobs, p.InDoubt, p.Earlier, p.Corrupt, p.Lines, p.Payload})
	require.Len(t, p.Targets, 2)
	require.Equal(t, p.Jobs, p.Targets[0].Jobs+p.Targets[1].Jobs)
	require.Equal(t, p.Once, p.Targets[0].Once, "a tube remembers no ids")
	require.NotContains(t, out+errs, "secret")

	code, out, _ = jobsub("", append([]string{"submit", "--dry-run", in}, nowhere...)...)
	require.Zero(t, code)
	require.Regexp(t, `^dry run, nothing was sent: jobs=3 once=\d in_doubt=0 earlier=0 corrupt=1 lines=5 payload_bytes=6$`, lastLine(out))

	code, _, errs = jobsub("", append([]string{"submit", "--dry-run", "--strict", in}, nowhere...)...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "corrupt line 3")
}

func TestADryRunKnowsWhatAResumeWouldSkip(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	statefile := filepath.Join(t.TempDir(), "state")
	args := []string{"submit", "--to", "redis://" + s.Addr() + "?list=in", "--resume", statefile}
	code, _, errs := jobsub("", append(args, file(t, "a\nb\n"))...)
	require.Zero(t, code, errs)
	code, out, errs := jobsub("", append(args, "--dry-run", file(t, "a\nb\nc\n"))...)
	require.Zero(t, code, errs)
	require.Contains(t, lastLine(out), "jobs=1 once=0 in_doubt=0 earlier=2 ")
	require.Equal(t, 2, s.Int("LLEN", "in"))
}

func TestSeveralTargetsHaveAnAccountEachAndOneTogether(t *testing.T) {
	s := testserver.StartRedis(t, testserver.RedisOptions{})
	b := testserver.StartBeanstalkd(t)
	in := strings.Repeat("{\"payload\":1}\n{\"payload\":2}\n", 200)
	code, out, errs := jobsub(in, "submit", "--to", "redis://"+s.Addr()+"?list=l", "--to", "beanstalk://"+b.Addr()+"/t", "--verify", "--quiet")
	require.Zero(t, code, errs)
	require.Contains(t, out, "account: accepted=400 answered=400 not_sent=0 maybe=0 lost=0 duplicated=0 ")
	n := s.Int("LLEN", "l")
	require.InDelta(t, 200, n, 60)
	require.Regexp(t, `jobsub: redis://\S+/0\?list=l: accepted=`+strconv.Itoa(n)+` answered=`+strconv.Itoa(n)+` failed=0 `, errs)
	require.Regexp(t, `jobsub: beanstalk://\S+/t: accepted=`+strconv.Itoa(400-n)+` answered=`+strconv.Itoa(400-n)+` failed=0 `, errs)
}
