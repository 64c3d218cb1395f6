package beanstalk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBodiesOfStatisticsAreReadInOrderAndValuesAreText(t *testing.T) {
	pairs, err := ParseDict([]byte("---\nname: a-b\npause: 0\nversion: \"1.12\"\nos: #1 SMP: x \"y\"\nodd: \"a\\\"b\\\\c\\n\"\nempty:\nquoted: \"\"\n\r\n"))
	require.NoError(t, err)
	require.Equal(t, []Pair{
		{"name", "a-b"}, {"pause", "0"}, {"version", "1.12"}, {"os", `#1 SMP: x "y"`}, {"odd", `a"b\c\n`}, {"empty", ""}, {"quoted", ""},
	}, pairs)
	list, err := ParseList([]byte("---\n- default\n- a/b\n- \"q\"\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"default", "a/b", "q"}, list)
	list, err = ParseList([]byte("---\n"))
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestABodyOutsideTheSubsetIsAnError(t *testing.T) {
	var pe *ProtocolError
	for _, body := range []string{
		"", "a: b\n", "---\nab\n", "---\na:b\n", "---\n: b\n", "---\n  a: b\n", "---\n- a: b\n", "---\na: \"b\n", "---\na: \"b\" c\n", "---\na: \"b\\", "--- \na: b\n",
	} {
		_, err := ParseDict([]byte(body))
		require.ErrorAs(t, err, &pe, "%q", body)
	}
	for _, body := range []string{"", "- a\n", "---\na\n", "---\n-a\n", "---\n - a\n", "---\n- \"a\n", "[a]\n"} {
		_, err := ParseList([]byte(body))
		require.ErrorAs(t, err, &pe, "%q", body)
	}
}
