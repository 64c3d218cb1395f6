package beanstalk

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const maxID = math.MaxUint64

// requests is every encoder with its largest arguments, and what it must give.
var requests = []struct {
	want string
	make func(dst []byte) ([]byte, error)
}{
	{"put 4294967295 4294967295 4294967295 3\r\na\r\n\r\n", func(d []byte) ([]byte, error) {
		return AppendPut(d, math.MaxUint32, math.MaxUint32, math.MaxUint32, []byte("a\r\n")), nil
	}},
	{"put 0 0 0 0\r\n\r\n", func(d []byte) ([]byte, error) { return AppendPut(d, 0, 0, 0, nil), nil }},
	{"use a/b\r\n", func(d []byte) ([]byte, error) { return AppendUse(d, "a/b") }},
	{"watch a/b\r\n", func(d []byte) ([]byte, error) { return AppendWatch(d, "a/b") }},
	{"ignore a/b\r\n", func(d []byte) ([]byte, error) { return AppendIgnore(d, "a/b") }},
	{"stats-tube a/b\r\n", func(d []byte) ([]byte, error) { return AppendStatsTube(d, "a/b") }},
	{"pause-tube a/b 60\r\n", func(d []byte) ([]byte, error) { return AppendPauseTube(d, "a/b", 60) }},
	{"reserve\r\n", func(d []byte) ([]byte, error) { return AppendReserve(d), nil }},
	{"reserve-with-timeout 7\r\n", func(d []byte) ([]byte, error) { return AppendReserveWithTimeout(d, 7), nil }},
	{"reserve-job 18446744073709551615\r\n", func(d []byte) ([]byte, error) { return AppendReserveJob(d, maxID), nil }},
	{"delete 18446744073709551615\r\n", func(d []byte) ([]byte, error) { return AppendDelete(d, maxID), nil }},
	{"release 1 2 3\r\n", func(d []byte) ([]byte, error) { return AppendRelease(d, 1, 2, 3), nil }},
	{"bury 1 2\r\n", func(d []byte) ([]byte, error) { return AppendBury(d, 1, 2), nil }},
	{"touch 1\r\n", func(d []byte) ([]byte, error) { return AppendTouch(d, 1), nil }},
	{"peek 1\r\n", func(d []byte) ([]byte, error) { return AppendPeek(d, 1), nil }},
	{"peek-ready\r\n", func(d []byte) ([]byte, error) { return AppendPeekReady(d), nil }},
	{"peek-delayed\r\n", func(d []byte) ([]byte, error) { return AppendPeekDelayed(d), nil }},
	{"peek-buried\r\n", func(d []byte) ([]byte, error) { return AppendPeekBuried(d), nil }},
	{"kick 10\r\n", func(d []byte) ([]byte, error) { return AppendKick(d, 10), nil }},
	{"kick-job 1\r\n", func(d []byte) ([]byte, error) { return AppendKickJob(d, 1), nil }},
	{"stats\r\n", func(d []byte) ([]byte, error) { return AppendStats(d), nil }},
	{"stats-job 1\r\n", func(d []byte) ([]byte, error) { return AppendStatsJob(d, 1), nil }},
	{"list-tubes\r\n", func(d []byte) ([]byte, error) { return AppendListTubes(d), nil }},
	{"list-tube-used\r\n", func(d []byte) ([]byte, error) { return AppendListTubeUsed(d), nil }},
	{"list-tubes-watched\r\n", func(d []byte) ([]byte, error) { return AppendListTubesWatched(d), nil }},
}

func TestEveryRequestIsEncodedBehindWhatIsThereWithoutAllocating(t *testing.T) {
	for _, r := range requests {
		got, err := r.make([]byte("before"))
		require.NoError(t, err)
		require.Equal(t, "before"+r.want, string(got))
		buf := make([]byte, 0, 256)
		require.Zero(t, testing.AllocsPerRun(20, func() { buf, _ = r.make(buf[:0]) }), r.want)
	}
	put := AppendPut(nil, math.MaxUint32, math.MaxUint32, math.MaxUint32, make([]byte, 12345))
	require.LessOrEqual(t, len(put)-12345, MaxOverhead)
}

// A name with a space or a line end in it is a second request, or a body, to the server (C46 c).
func TestANameThatNoTubeCanHaveIsRefusedAndLeavesNoTrace(t *testing.T) {
	bad := []string{
		"", "-a", "a b", "a\r\nput 0 0 1 1", "a\n", "a\r", "a\x00", "ä", "a\xff", "a*", "a,b", "a:b", "a%b", "a\tb", strings.Repeat("a", MaxName+1), strings.Repeat("a", 1<<16),
	}
	for _, name := range bad {
		for verb, f := range map[string]func([]byte, string) ([]byte, error){
			"use": AppendUse, "watch": AppendWatch, "ignore": AppendIgnore, "stats-tube": AppendStatsTube,
			"pause-tube": func(d []byte, n string) ([]byte, error) { return AppendPauseTube(d, n, 1) },
		} {
			got, err := f([]byte("before"), name)
			var ne *NameError
			require.ErrorAs(t, err, &ne, "%s %q", verb, name)
			require.LessOrEqual(t, len(ne.Name), MaxName+1)
			require.Equal(t, "before", string(got))
		}
		require.False(t, validName([]byte(name)))
	}
	for _, name := range []string{"a", "0", "a-", "+/;.$_()-9", strings.Repeat("Z", MaxName)} {
		require.NoError(t, CheckName(name))
		require.True(t, validName([]byte(name)))
	}
	require.Zero(t, testing.AllocsPerRun(20, func() { _ = CheckName("a-good-name") }))
}
