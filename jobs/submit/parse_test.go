package submit_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/jobs/submit"
)

type heard struct {
	line int64
	text string
}

func TestLinesBecomeJobsByteForByte(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for name, tc := range map[string]struct {
		in    string
		want  []string
		lines []int64
	}{
		"empty input":                 {"", nil, nil},
		"only line ends":              {"\n\r\n\n", nil, nil},
		"LF":                          {"a\nb\n", []string{"a", "b"}, []int64{1, 2}},
		"CRLF":                        {"a\r\nb\r\n", []string{"a", "b"}, []int64{1, 2}},
		"no line end at the end":      {"a\nb", []string{"a", "b"}, []int64{1, 2}},
		"blank lines keep the count":  {"\n\na\n \t\nb\n", []string{"a", "b"}, []int64{3, 5}},
		"byte order mark":             {"\xef\xbb\xbfa\nb\n", []string{"a", "b"}, []int64{1, 2}},
		"BOM alone":                   {"\xef\xbb\xbf", nil, nil},
		"BOM later is data":           {"a\n\xef\xbb\xbfb\n", []string{"a", "\xef\xbb\xbfb"}, []int64{1, 2}},
		"invalid UTF-8 and NUL":       {"\xff\xfe\x00\xc3\n", []string{"\xff\xfe\x00\xc3"}, []int64{1}},
		"CR inside":                   {"a\rb\n", []string{"a\rb"}, []int64{1}},
		"longer than the read buffer": {"a\n" + long + "\nb\n", []string{"a", long, "b"}, []int64{1, 2, 3}},
		"long last line":              {long, []string{long}, []int64{1}},
		"braces later do not matter":  {"a\n{\"x\":1}\n", []string{"a", `{"x":1}`}, []int64{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			a, err := run(t, tc.in, f, submit.Options{Corrupt: func(n int64, err error) { t.Errorf("line %d: %v", n, err) }})
			require.NoError(t, err)
			require.Equal(t, tc.want, f.payloads())
			require.ElementsMatch(t, tc.lines, f.lines())
			require.EqualValues(t, len(tc.want), a.Accepted)
		})
	}
}

func TestNDJSONBecomesJobs(t *testing.T) {
	for name, tc := range map[string]struct{ in, id, queue, payload string }{
		"usual spelling":        {`{"id":"a","queue":"q","payload":{"x":[1,2]}}`, "a", "q", `{"x":[1,2]}`},
		"other order and space": {` { "payload" : "s" , "queue":"q", "id":"a"} `, "a", "q", `"s"`},
		"payload is kept raw":   {`{"id":"a","queue":"q","payload": {"b" : 1.0,  "a":"\u00e9"} }`, "a", "q", `{"b" : 1.0,  "a":"\u00e9"}`},
		"null payload":          {`{"id":"a","queue":"q","payload":null}`, "a", "q", `null`},
		"number id":             {`{"id":12,"queue":"q","payload":1}`, "12", "q", "1"},
		"no id":                 {`{"queue":"q","payload":1}`, "in:1", "q", "1"},
		"null id, empty queue":  {`{"id":null,"queue":"","payload":1}`, "in:1", "main", "1"},
		"no queue":              {`{"id":"a","payload":1}`, "a", "main", "1"},
		"escaped id":            {`{"id":"a\"\u00e9","queue":"q","payload":1}`, `a"é`, "q", "1"},
		"invalid UTF-8 inside":  {"{\"id\":\"a\",\"queue\":\"q\",\"payload\":\"\xff\"}", "a", "q", "\"\xff\""},
		"same, other spelling":  {"{\"queue\":\"q\",\"id\":\"a\",\"payload\":\"\xff\"}", "a", "q", "\"\xff\""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			_, err := run(t, tc.in+"\r\n", f, submit.Options{IDPrefix: "in:", Queue: "main",
				Corrupt: func(n int64, err error) { t.Errorf("line %d: %v", n, err) }})
			require.NoError(t, err)
			require.Len(t, f.mu.calls, 1)
			c := f.mu.calls[0]
			require.Equal(t, []string{tc.id, tc.queue, tc.payload}, []string{c.id, c.queue, c.payload})
		})
	}
}

func TestCorruptLinesAreNamedByNumberCountedAndSkipped(t *testing.T) {
	good := `{"id":"g","queue":"q","payload":1}`
	in := strings.Join([]string{
		good,
		`{"id":"x","queue":"q","payload":`, // 2: cut short
		`plain text`,                       // 3
		good,                               // 4
		`{"id":"x","queue":"q"}`,           // 5: no payload
		`{"id":"x","queue":"q","payload":1,"priority":5}`,                   // 6: a field that would be lost
		`{"id":"x","queue":"q","payload":1} {}`,                             // 7: more than one value
		`{"id":["x"],"queue":"q","payload":1}`,                              // 8
		`{"id":"x","queue":7,"payload":1}`,                                  // 9
		`{"id":"` + strings.Repeat("y", 500) + `","queue":"q","payload":1}`, // 10: too long
		"", // 11: blank, no job and not corrupt
		good,
		`{"ID":"x","queue":"q","payload":1}`, // 13: other letter case
		`{"id":"x","queue":"q","Payload":1}`, // 14
		`{"id":"x","id":"y","queue":"q","payload":1}`,       // 15: twice
		`{"payload":null,"id":"x","queue":"q","payload":1}`, // 16: twice, once null
		`{"id":"x","queue":"q","payload":1,"payload":2}`,    // 17: twice, on the way of the usual spelling
		`{"id":2.0,"payload":1}`,                            // 18: 2, by another name
		`{"id":2e0,"payload":1}`,                            // 19
		`{"id":-0,"payload":1}`,                             // 20
		"{\"queue\":\"q\xff\",\"payload\":1}",               // 21: no text
		`{"id":"x" "queue":"q","payload":1}`,                // 22
		`[{"payload":1}]`,                                   // 23
		`{"i\u0064":"x","queue":"q","payload":1}`,           // an id all the same
	}, "\n")
	want := []heard{{2, "EOF"}, {3, "invalid character"}, {5, "payload"}, {6, "priority"}, {7, "after the object"},
		{8, "want a string or a whole number"}, {9, "queue"}, {10, "too long"},
		{13, `"ID"`}, {14, `"Payload"`}, {15, `"id" is there twice`}, {16, `"payload" is there twice`}, {17, `"payload" is there twice`},
		{18, "2.0"}, {19, "2e0"}, {20, "-0"}, {21, "not valid UTF-8"}, {22, "invalid character"}, {23, "not an object"}}

	var got []heard
	f := &fake{}
	a, err := run(t, in, f, submit.Options{MaxLine: 200, Corrupt: func(n int64, err error) {
		got = append(got, heard{n, err.Error()})
	}})
	require.NoError(t, err)
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].line, got[i].line, got[i].text)
		require.Contains(t, got[i].text, want[i].text)
	}
	require.EqualValues(t, len(want), a.Corrupt)
	require.EqualValues(t, 4, a.Accepted)
	require.Equal(t, []int64{1, 4, 12, 24}, f.lines())
	require.EqualValues(t, 24, a.Lines)
}

func TestStrictStopsAtTheFirstCorruptLine(t *testing.T) {
	good := `{"id":"g","queue":"q","payload":1}` + "\n"
	f := &fake{}
	a, err := run(t, good+good+"oops\n"+good, f, submit.Options{Strict: true})
	require.ErrorIs(t, err, submit.ErrCorrupt)
	require.ErrorContains(t, err, "line 3")
	require.EqualValues(t, 2, a.Answered)
	require.EqualValues(t, 1, a.Corrupt)
	require.EqualValues(t, 3, a.Lines)
}

func TestALineOfExactlyTheLimitPasses(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", ""} {
		for _, limit := range []int{10, 70_000} {
			f := &fake{}
			in := strings.Repeat("a", limit) + end
			a, err := run(t, in, f, submit.Options{MaxLine: limit})
			require.NoError(t, err)
			require.EqualValues(t, 1, a.Accepted, "%q at %d", end, limit)

			a, err = run(t, "a"+in+"b\n", &fake{}, submit.Options{MaxLine: limit - 1})
			require.NoError(t, err)
			require.EqualValues(t, 1, a.Corrupt, "%q at %d", end, limit)
		}
	}
}

func TestAnOverlongLineIsNotHeldInMemory(t *testing.T) {
	const size = 32 << 20
	in := strings.Repeat("z", size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a, err := run(t, in, &fake{}, submit.Options{MaxLine: 1000})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.EqualValues(t, 1, a.Corrupt)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2<<20))
}

func TestFromLineSkipsWhatAnEarlierRunDealtWith(t *testing.T) {
	f := &fake{}
	_, err := run(t, numbered(10), f, submit.Options{FromLine: 8})
	require.NoError(t, err)
	require.Equal(t, []string{"job 8", "job 9", "job 10"}, f.payloads())
}

func TestFormatsHaveNames(t *testing.T) {
	for name, want := range map[string]submit.Format{"auto": submit.FormatAuto, "ndjson": submit.FormatNDJSON, "lines": submit.FormatLines} {
		got, err := submit.ParseFormat(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := submit.ParseFormat("xml")
	require.ErrorContains(t, err, `"xml"`)
}

func TestForcedFormatsAreNotGuessed(t *testing.T) {
	f := &fake{}
	_, err := run(t, "{\"x\":1}\n", f, submit.Options{Format: submit.FormatLines})
	require.NoError(t, err)
	require.Equal(t, []string{`{"x":1}`}, f.payloads())

	a, err := run(t, "plain\n", &fake{}, submit.Options{Format: submit.FormatNDJSON})
	require.NoError(t, err)
	require.EqualValues(t, 1, a.Corrupt)
}

// FuzzTheShortPathAgreesWithEncodingJSON compares what the fast reading of the usual spelling gives with a
// general parse of the same line.
func FuzzTheShortPathAgreesWithEncodingJSON(f *testing.F) {
	f.Add("a", "q", `{"x":1}`)
	f.Add("a\\u0041", "q", `1`)
	f.Add("a", "q", `1,"payload":2`)
	f.Add("a", "q", `1,"id":"b"`)
	f.Add("a\",\"id\":\"b", "q", ` "x" `)
	f.Fuzz(func(t *testing.T, id, queue, payload string) {
		line := `{"id":"` + id + `","queue":"` + queue + `","payload":` + payload + `}`
		if strings.ContainsAny(line, "\r\n") || len(line) > 10_000 {
			t.Skip()
		}
		short, long := &fake{}, &fake{}
		a, err := run(t, line, short, submit.Options{Format: submit.FormatNDJSON})
		require.NoError(t, err)
		b, err := run(t, `{ `+line[1:], long, submit.Options{Format: submit.FormatNDJSON})
		require.NoError(t, err)
		require.Equal(t, b.Accepted, a.Accepted, line)
		if a.Accepted == 1 {
			require.True(t, json.Valid([]byte(line)))
			x, y := short.mu.calls[0], long.mu.calls[0]
			require.Equal(t, []string{y.id, y.queue, y.payload}, []string{x.id, x.queue, x.payload})
		}
	})
}
