package resp

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scanAll feeds stream to a Scanner in pieces of the given size and returns the frames and kinds found.
func scanAll(t testing.TB, stream []byte, piece int) (frames []string, kinds []Kind, err error) {
	s := NewScanner(Limits{})
	start, end := 0, 0
	for {
		n, need, kind, err := s.Next(stream[start:end])
		switch {
		case err != nil:
			require.Zero(t, n)
			return frames, kinds, err
		case n > 0:
			require.LessOrEqual(t, n, end-start)
			frames = append(frames, string(stream[start:start+n]))
			kinds = append(kinds, kind)
			start += n
			continue
		}
		require.Greater(t, need, end-start, "an incomplete frame needs more than is there")
		if end == len(stream) {
			return frames, kinds, nil
		}
		end = min(end+piece, len(stream))
	}
}

// Covers: E-30
func TestEveryFrameIsFoundWholeWhereverTheStreamIsSplit(t *testing.T) {
	var stream strings.Builder
	var want []string
	var kinds []Kind
	for _, f := range legal {
		stream.WriteString(f.frame)
		want = append(want, f.frame)
		kinds = append(kinds, f.kind)
	}
	for piece := 1; piece <= stream.Len(); piece++ {
		got, gotKinds, err := scanAll(t, []byte(stream.String()), piece)
		require.NoError(t, err)
		require.Equal(t, want, got, "pieces of %d bytes", piece)
		require.Equal(t, kinds, gotKinds)
	}
}

func TestNeedIsALowerBoundOfTheFrameAndGrowsAboveWhatIsThere(t *testing.T) {
	for _, f := range legal {
		for i := range len(f.frame) {
			n, need, _, err := NewScanner(Limits{}).Next([]byte(f.frame[:i]))
			require.NoError(t, err, f.name)
			require.Zero(t, n, f.name)
			require.Greater(t, need, i, f.name)
			require.LessOrEqual(t, need, len(f.frame), "%s after %d bytes", f.name, i)
		}
	}
}

// Covers: E-36
func TestALargeFrameIsAnnouncedBeforeItArrives(t *testing.T) {
	for head, want := range map[string]int{
		"$104857600\r\n":          len("$104857600\r\n") + 104857600 + 2,
		"*1000000\r\n":            len("*1000000\r\n") + 3000000,
		"%1000\r\n+a\r\n":         len("%1000\r\n+a\r\n") + 3*1999,
		"*2\r\n$5000\r\n":         len("*2\r\n$5000\r\n") + 5002 + 3,
		"|1\r\n+k\r\n$5000\r\nxx": len("|1\r\n+k\r\n$5000\r\n") + 5002 + 3,
	} {
		_, need, _, err := NewScanner(Limits{}).Next([]byte(head))
		require.NoError(t, err)
		require.Equal(t, want, need, "%q", head)
	}
}

func TestWhatIsNotTheProtocolIsAnErrorAndStaysOne(t *testing.T) {
	for name, in := range map[string]string{
		"bulk longer than the limit":     "$4294967296\r\n",
		"stray character in a length":    "$0:\r\n",
		"negative bulk":                  "$-2\r\n",
		"length that overflows":          "$18446744073709551621\r\n",
		"negative array":                 "*-2\r\n",
		"huge array":                     "*2147483647\r\n",
		"huge map":                       "%134217727\r\n",
		"stray character in a number":    ":12x\r\n",
		"number out of range":            ":9223372036854775808\r\n",
		"number out of range, negative":  ":-9223372036854775809\r\n",
		"number of 30 digits":            ":111111111111111111111111111111\r\n",
		"empty number":                   ":\r\n",
		"sign alone":                     ":-\r\n",
		"deep nesting":                   strings.Repeat("*1\r\n", 100_000),
		"deep attributes":                strings.Repeat("|1\r\n", 200),
		"unknown type":                   "@1\r\n",
		"unknown type inside":            "*1\r\nX",
		"no length":                      "$\r\n",
		"plus in a length":               "$+1\r\n",
		"minus zero":                     "*-0\r\n",
		"null of a map":                  "%-1\r\n",
		"null of a set":                  "~-1\r\n",
		"null of a bulk error":           "!-1\r\n",
		"null of a push":                 ">-1\r\n",
		"empty push":                     ">0\r\n",
		"push inside":                    "*1\r\n>1\r\n",
		"stray character in a null":      "_x\r\n",
		"boolean that is neither":        "#x\r\n",
		"boolean of two letters":         "#tt\r\n",
		"double that is text":            ",abc\r\n",
		"double with two points":         ",1.2.3\r\n",
		"double with empty exponent":     ",1e\r\n",
		"empty double":                   ",\r\n",
		"big number with a letter":       "(12a\r\n",
		"verbatim without room":          "=3\r\nabc\r\n",
		"verbatim without colon":         "=5\r\nabcde\r\n",
		"bulk that is longer than told":  "$3\r\nabcd\r\n",
		"bulk that is shorter than told": "$5\r\nabc\r\n+OK\r\n",
		"line feed alone":                "+OK\n",
		"line feed at once":              ":\n",
		"endless number":                 ":" + strings.Repeat("0", 100),
		"endless length":                 "$" + strings.Repeat("0", 100),
		"endless line":                   "+" + strings.Repeat("x", 1<<20),
		"streamed string":                "$?\r\n",
		"streamed array":                 "*?\r\n",
		"streamed part":                  ";4\r\n",
		"end of a stream":                ".\r\n",
		"request in place of a reply":    "GET x\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{len(in)/2000 + 1, len(in)/700 + 7, 64 << 10} {
				frames, _, err := scanAll(t, []byte("+OK\r\n"+in), piece)
				var pe *ProtocolError
				require.ErrorAs(t, err, &pe)
				require.NotEmpty(t, pe.Reason)
				require.Equal(t, []string{"+OK\r\n"}, frames, "what came before is intact")
			}
			s := NewScanner(Limits{})
			_, _, _, err := s.Next([]byte(in))
			require.Error(t, err)
			_, _, _, again := s.Next([]byte("+OK\r\n"))
			require.Equal(t, err, again, "a lost stream is not found again")
		})
	}
}

func TestAStreamedReplyIsRefusedByName(t *testing.T) {
	_, _, _, err := NewScanner(Limits{}).Next([]byte("$?\r\n"))
	require.ErrorContains(t, err, "streamed")
}

func TestLyingLengthsCostNoMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, in := range []string{"$536870912\r\n", "*134217728\r\n", "%67108864\r\n", strings.Repeat("*1\r\n", 100_000)} {
		_, _, _, _ = NewScanner(Limits{}).Next([]byte(in))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
}

func TestLongButLegalFramesPass(t *testing.T) {
	for name, f := range map[string]string{
		"simple string of 600 KB": "+" + strings.Repeat("s", 600<<10) + "\r\n",
		"error of 600 KB":         "-ERR " + strings.Repeat("s", 600<<10) + "\r\n",
		"big number of 2,000":     "(" + strings.Repeat("9", 2000) + "\r\n",
		"128 levels":              strings.Repeat("*1\r\n", 128) + ":1\r\n",
	} {
		frames, _, err := scanAll(t, []byte(f+"+OK\r\n"), 4096)
		require.NoError(t, err, name)
		require.Equal(t, []string{f, "+OK\r\n"}, frames, name)
	}
}

func TestLimitsAreTheOnesGiven(t *testing.T) {
	for _, tc := range []struct {
		lim      Limits
		ok, over string
	}{
		{Limits{Depth: 2}, "*1\r\n*1\r\n:1\r\n", "*1\r\n*1\r\n*1\r\n:1\r\n"},
		{Limits{Elements: 4}, "*2\r\n*3\r\n+a\r\n+b\r\n+c\r\n+d\r\n", "*2\r\n*4\r\n"},
		{Limits{Line: 6}, "+abc\r\n", "+abcd\r\n"},
		{Limits{Bulk: 3}, "$3\r\nabc\r\n", "$4\r\n"},
		{Limits{Depth: -1, Elements: -1}, strings.Repeat("*1\r\n", 1000) + "*0\r\n", "*" + strings.Repeat("9", 25) + "\r\n"},
	} {
		n, _, _, err := NewScanner(tc.lim).Next([]byte(tc.ok))
		require.NoError(t, err)
		require.Equal(t, len(tc.ok), n)
		_, _, _, err = NewScanner(tc.lim).Next([]byte(tc.over))
		require.Error(t, err, "%+v", tc.lim)
	}
	err := Limits{Line: 2, Elements: 1}.Validate()
	require.ErrorContains(t, err, "Line is 2")
	require.ErrorContains(t, err, "Elements is 1")
	require.NoError(t, Limits{}.Validate())
	require.NoError(t, Limits{Depth: -1, Elements: -1, Line: -1, Bulk: -1}.Validate())
}

// Covers: E-48
func TestAReplyOf14MegabytesIsScannedOnce(t *testing.T) {
	var b bytes.Buffer
	const n = 200_000
	fmt.Fprintf(&b, "*%d\r\n", n)
	for i := range n {
		v := strconv.Itoa(i) + strings.Repeat("v", 58)
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(v), v)
	}
	stream := b.Bytes()
	require.Greater(t, len(stream), 13<<20)
	s := NewScanner(Limits{})
	calls := 0
	for end := 0; ; end = min(end+64<<10, len(stream)) {
		calls++
		got, _, _, err := s.Next(stream[:end])
		require.NoError(t, err)
		if got > 0 {
			require.Equal(t, len(stream), got)
			break
		}
	}
	require.Greater(t, calls, 200)
	require.Less(t, s.visited, len(stream), "no byte is looked at twice, and payloads are not looked at")
	require.Equal(t, len("200000\r\n")+n*len("61\r\n"+"\r\n"), s.visited, "headers and line ends, each once")
}

// Covers: E-48
func TestALongLineInSmallPiecesIsSearchedOnce(t *testing.T) {
	f := []byte("+" + strings.Repeat("x", 900<<10) + "\r\n")
	s := NewScanner(Limits{})
	for end := 0; ; end = min(end+100, len(f)) {
		n, _, _, err := s.Next(f[:end])
		require.NoError(t, err)
		if n > 0 {
			break
		}
	}
	require.LessOrEqual(t, s.visited, len(f)+1)
}

func TestScanningKeepsNoReferenceAndAllocatesNothing(t *testing.T) {
	stream := []byte("+OK\r\n:1\r\n$3\r\nabc\r\n*2\r\n:1\r\n*1\r\n+a\r\n%1\r\n+a\r\n,1.5\r\n")
	s := NewScanner(Limits{})
	scan := func() {
		for b := stream; len(b) > 0; {
			n, _, _, err := s.Next(b)
			if err != nil || n == 0 {
				panic("frame not found")
			}
			b = b[n:]
		}
	}
	scan()
	require.Zero(t, testing.AllocsPerRun(100, scan))
	_, _, _, err := s.Next([]byte("$5\r\nab"))
	require.NoError(t, err)
	n, _, _, err := s.Next([]byte("$5\r\nabcde\r\n")) // other memory, same bytes
	require.NoError(t, err)
	require.Equal(t, 11, n)
}

func BenchmarkNext(b *testing.B) {
	for name, f := range map[string]string{"ok": "+OK\r\n", "int": ":12345\r\n", "bulk64": "$64\r\n" + strings.Repeat("x", 64) + "\r\n", "array": "*3\r\n:1\r\n:2\r\n:3\r\n"} {
		b.Run(name, func(b *testing.B) {
			s, buf := NewScanner(Limits{}), []byte(strings.Repeat(f, 100))
			b.ReportAllocs()
			off := 0
			for b.Loop() {
				n, _, _, _ := s.Next(buf[off:])
				if off += n; off == len(buf) {
					off = 0
				}
			}
		})
	}
}

// A push is no answer, however large it is announced: whoever bounds frames must know before it is whole.
// Covers: E-30
func TestAPushIsKnownForOneBeforeItIsWhole(t *testing.T) {
	for _, frame := range []string{">2\r\n+a\r\n$5\r\nhello\r\n", "|1\r\n+k\r\n+v\r\n>1\r\n*1\r\n:1\r\n"} {
		s := NewScanner(Limits{})
		known := strings.IndexByte(frame, '>') + len(">1\r\n")
		for i := range len(frame) {
			_, _, kind, err := s.Next([]byte(frame[:i]))
			require.NoError(t, err)
			require.Equal(t, i >= known, kind == Push, "%q", frame[:i])
		}
	}
	s := NewScanner(Limits{})
	_, _, kind, err := s.Next([]byte("*2\r\n-ERR x\r\n"))
	require.NoError(t, err)
	require.Zero(t, kind)
}

// A big number of a million digits took seconds of the caller's time to become a big.Int.
// Covers: C08
func TestABigNumberHasABound(t *testing.T) {
	line := func(digits int) []byte { return []byte("(-" + strings.Repeat("7", digits) + "\r\n") }
	_, kinds, err := scanAll(t, line(maxDigits), 1<<20)
	require.NoError(t, err)
	require.Len(t, kinds, 1)
	_, err = Decode(line(maxDigits))
	require.NoError(t, err)
	_, _, err = scanAll(t, line(maxDigits+1), 1<<20)
	require.ErrorContains(t, err, "digits")
	_, err = Decode(line(maxDigits + 1))
	require.ErrorContains(t, err, "digits")
}
