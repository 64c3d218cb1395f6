package resp

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScalarsAreReadAsWhatTheyAre(t *testing.T) {
	r := NewReader([]byte(":5\r\n$2\r\n17\r\n(99\r\n#t\r\n,1.5\r\n$3\r\n2.5\r\n:3\r\n,inf\r\n#f\r\n:1\r\n$1\r\n0\r\n+OK\r\n=7\r\ntxt:abc\r\n$0\r\n\r\n"))
	for _, want := range []int64{5, 17, 99, 1} {
		n, err := r.Int()
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	for _, want := range []float64{1.5, 2.5, 3, math.Inf(1)} {
		f, err := r.Float()
		require.NoError(t, err)
		require.Equal(t, want, f)
	}
	for _, want := range []bool{false, true, false, true} {
		b, err := r.Bool()
		require.NoError(t, err)
		require.Equal(t, want, b)
	}
	for _, want := range []string{"abc", ""} {
		s, err := r.Text()
		require.NoError(t, err)
		require.Equal(t, want, s)
	}
	require.False(t, r.More())
	_, err := r.Int()
	require.Error(t, err)
}

// A decoder that met an unexpected type once returned without consuming it, and the rest was read one off.
func TestAValueOfAnUnexpectedTypeIsConsumedAndTheNextIsRight(t *testing.T) {
	for name, odd := range map[string]string{
		"array": "*2\r\n:1\r\n*1\r\n:2\r\n", "map": "%1\r\n+a\r\n+b\r\n", "set": "~1\r\n:1\r\n", "null": "_\r\n",
		"null bulk": "$-1\r\n", "null array": "*-1\r\n", "error": "-ERR x\r\n", "bulk error": "!5\r\nERR x\r\n",
		"text": "$1\r\nx\r\n", "attribute": "|1\r\n+a\r\n+b\r\n%0\r\n",
	} {
		reads := map[string]func(*Reader) error{
			"int":   func(r *Reader) error { _, err := r.Int(); return err },
			"float": func(r *Reader) error { _, err := r.Float(); return err },
			"bool":  func(r *Reader) error { _, err := r.Bool(); return err },
		}
		if name != "text" {
			reads["bytes"] = func(r *Reader) error { _, err := r.Bytes(); return err }
		}
		for as, read := range reads {
			r := NewReader([]byte(odd + ":7\r\n"))
			require.Error(t, read(&r), "%s as %s", name, as)
			n, err := r.Int()
			require.NoError(t, err, "%s as %s", name, as)
			require.EqualValues(t, 7, n)
		}
	}
	for name, odd := range map[string]string{"text": "$1\r\nx\r\n", "odd array": "*3\r\n:1\r\n*1\r\n+a\r\n:3\r\n", "null": "*-1\r\n"} {
		r := NewReader([]byte(odd + ":7\r\n"))
		_, err := r.Map()
		require.Error(t, err, name)
		n, err := r.Int()
		require.NoError(t, err, name)
		require.EqualValues(t, 7, n)
	}
}

func TestErrorsNameWhatWasFound(t *testing.T) {
	r := NewReader([]byte("_\r\n-WRONGTYPE no\r\n*0\r\n:1\r\n"))
	_, err := r.Int()
	require.ErrorIs(t, err, ErrNull)
	_, err = r.Int()
	var e Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "WRONGTYPE", e.Code())
	_, err = r.Int()
	require.Equal(t, &TypeMismatch{Got: TypeArray, Want: "an integer"}, err)
	_, err = r.Array()
	require.Equal(t, &TypeMismatch{Got: TypeInt, Want: "an array"}, err)
	require.Empty(t, Error("not a code").Code())
}

func TestAggregatesAreEnteredInBothVersions(t *testing.T) {
	for _, in := range []string{"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n", "*4\r\n+a\r\n:1\r\n+b\r\n:2\r\n"} {
		r := NewReader([]byte(in))
		n, err := r.Map()
		require.NoError(t, err)
		require.Equal(t, 2, n)
		r = NewReader([]byte(in))
		n, err = r.Array()
		require.NoError(t, err)
		require.Equal(t, 4, n)
	}
	r := NewReader([]byte("*2\r\n~1\r\n+a\r\n|1\r\n+x\r\n+y\r\n*2\r\n:1\r\n:2\r\n:9\r\n"))
	n, err := r.Array()
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, TypeSet, r.Type())
	require.NoError(t, r.Skip())
	raw, err := r.Raw()
	require.NoError(t, err)
	require.Equal(t, "*2\r\n:1\r\n:2\r\n", string(raw), "without the attribute")
	require.False(t, r.Null())
	require.Equal(t, TypeInt, r.Type())
	r = NewReader([]byte("*-1\r\n_\r\n$-1\r\n:1\r\n"))
	for range 3 {
		require.True(t, r.Null())
	}
	require.False(t, r.Null())
}

func TestDecodeGivesPlainGoValues(t *testing.T) {
	huge, _ := new(big.Int).SetString("3492890328409238509324850943850943825024385", 10)
	for in, want := range map[string]any{
		"+OK\r\n":          "OK",
		"$2\r\nhi\r\n":     "hi",
		"=6\r\nmkd:hi\r\n": "hi",
		":-3\r\n":          int64(-3),
		",2.5\r\n":         2.5,
		"#t\r\n":           true,
		"_\r\n":            nil,
		"$-1\r\n":          nil,
		"*-1\r\n":          nil,
		"(3492890328409238509324850943850943825024385\r\n": huge,
		"*3\r\n:1\r\n-ERR x\r\n~1\r\n+a\r\n":               []any{int64(1), Error("ERR x"), []any{"a"}},
		"%2\r\n+a\r\n:1\r\n:7\r\n*0\r\n":                   Map{{"a", int64(1)}, {int64(7), []any{}}},
		"|1\r\n+a\r\n+b\r\n:1\r\n":                         int64(1),
		">2\r\n+m\r\n+x\r\n":                               []any{"m", "x"},
	} {
		got, err := Decode([]byte(in))
		require.NoError(t, err, "%q", in)
		require.Equal(t, want, got, "%q", in)
	}
	_, err := Decode([]byte("-ERR no\r\n"))
	require.Equal(t, Error("ERR no"), err)
	_, err = Decode([]byte("+OK\r\n+OK\r\n"))
	var pe *ProtocolError
	require.ErrorAs(t, err, &pe)
	_, err = Decode([]byte(strings.Repeat("*1\r\n", 200) + "*0\r\n"))
	require.ErrorAs(t, err, &pe)
	m := Map{{"a", 1}, {int64(2), 2}}
	v, ok := m.Lookup("a")
	require.True(t, ok)
	require.Equal(t, 1, v)
	_, ok = m.Lookup("b")
	require.False(t, ok)
}

func TestReadersOfCutFramesFailAndDoNotPanic(t *testing.T) {
	for _, f := range legal {
		for i := range len(f.frame) {
			_, err := Decode([]byte(f.frame[:i]))
			require.Error(t, err, "%s cut at %d", f.name, i)
			r := NewReader([]byte(f.frame[:i]))
			require.Error(t, r.Skip(), "%s cut at %d", f.name, i)
		}
		r := NewReader([]byte(f.frame))
		require.NoError(t, r.Skip(), f.name)
		require.False(t, r.More(), f.name)
	}
}
