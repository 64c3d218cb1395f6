package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/redis"
)

// A judge that finds nothing proves nothing: here it is given what it must find.
func TestTheJudgeFindsEachKindOfLie(t *testing.T) {
	fail := func(f carry.Fate, cause error) error { return &fdengine.CallError{Fate: f, Cause: cause} }
	outcomes := map[byte]error{
		'a': nil, 'm': fail(carry.MaybeExecuted, nil), 'n': fail(carry.NotSent, nil),
		'w': fail(carry.NotSent, context.DeadlineExceeded), 'l': &redis.ServerError{Code: "LOADING"},
		'x': &redis.ServerError{Code: "ERR"},
	}
	for _, tc := range []struct {
		name   string
		told   string // one letter for each command; '-' for none
		most   int
		epochs []int
		has    string // numbers in the order of the server
		want   string // in what is wrong; empty: nothing is
	}{
		{"all is well", "aamnwl", 1, nil, "1 0", ""},
		{"a maybe that ran", "am", 1, nil, "0 1", ""},
		{"lost", "aa", 1, nil, "0", "x#1 (told answered): is lost"},
		{"twice", "am", 1, nil, "0 1 1", "x#1 (told maybe): ran 2 times, 1 are allowed"},
		{"within the budget", "am", 3, nil, "0 1 1 1", ""},
		{"beyond the budget", "am", 3, nil, "0 1 1 1 1", "ran 4 times"},
		{"not sent, and yet there", "an", 1, nil, "0 1", "x#1 (told not sent): ran 1 times"},
		{"withdrawn, and yet there", "aw", 1, nil, "0 1", "ran 1 times"},
		{"refused, and yet there", "al", 1, nil, "0 1", "ran 1 times"},
		{"never settled", "a-", 1, nil, "0", "x#1 (told nothing): was never settled"},
		{"a strange answer", "ax", 1, nil, "0 1", "nothing here can cause"},
		{"a foreign token", "a", 1, nil, "0 7", "foreign token"},
		{"a Stream", "aamnn", 1, []int{0}, "0 1 2", ""},
		{"a Stream that broke and began anew", "amnaa", 1, []int{0, 3}, "0 3 4", ""},
		{"a Stream in which somebody withdrew", "awala", 1, []int{0}, "0 2 4", ""},
		{"something ran behind a gap", "amm", 1, []int{0}, "0 2", "x#2 (told maybe): ran behind 1"},
		{"out of order", "aaa", 1, []int{0}, "1 0 2", "x#0 (told answered): ran after 1"},
		{"an old one after a new epoch", "ama", 1, []int{0, 2}, "0 2 1", "ran after 2"},
		{"a Stream that went again", "aaaa", 4, []int{0}, "0 1 2 0 1 2 3", ""},
		{"a Stream that went again with a gap", "aaaa", 4, []int{0}, "0 1 2 0 2 3", "x#2 (told answered): ran after 0, with a gap"},
		{"a Stream that went again over who withdrew", "awaa", 4, []int{0}, "0 2 0 2 3", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSeries("x", tc.most)
			s.epochs = tc.epochs
			for _, w := range tc.told {
				if i, _ := s.take(); w != '-' {
					s.note(i, "", outcomes[byte(w)])
				}
			}
			var has []found
			for n, i := range strings.Fields(tc.has) {
				has = append(has, found{fmt.Sprint("id", n), "x#" + i})
			}
			wrongs := errors.Join(s.judge(has)...)
			if tc.want == "" {
				require.NoError(t, wrongs)
			} else {
				require.ErrorContains(t, wrongs, tc.want)
			}
		})
	}
}

func TestTheJudgeFindsAForeignReplyAndASecondOutcome(t *testing.T) {
	s := newSeries("x", 1)
	for _, id := range []string{"1-1", "1-2"} {
		i, _ := s.take()
		s.note(i, id, nil)
	}
	has := []found{{"1-2", "x#0"}, {"1-1", "x#1"}}
	require.ErrorContains(t, errors.Join(s.judge(has)...), `was answered with id "1-1", which is of 1`)
	s.note(0, "1-1", nil)
	require.ErrorContains(t, errors.Join(s.judge(has)...), "told answered after answered")
}

func TestTheJudgeOfACounterAndOfACellKnowsWhatMayBe(t *testing.T) {
	c := counter{key: "c", ok: 5, maybe: 2, last: 6}
	require.Error(t, errors.Join(c.judge(5)...), "below an answer")
	require.NoError(t, errors.Join(c.judge(6)...))
	require.NoError(t, errors.Join(c.judge(7)...))
	require.Error(t, errors.Join(c.judge(8)...))

	l := cell{key: "k", told: []told{answered, maybe, answered, notSent, maybe}}
	for value, ok := range map[string]bool{"0": false, "1": false, "2": true, "3": false, "4": true, "5": false, "x": false} {
		require.Equal(t, ok, errors.Join(l.judge(value)...) == nil, value)
	}
	require.Error(t, errors.Join(l.judge(nil)...))
	require.NoError(t, errors.Join((&cell{told: []told{maybe, notSent}}).judge(nil)...))
}

func TestADeadlineOfADialIsNoWithdrawal(t *testing.T) {
	w, err := whatTold(&fdengine.CallError{Fate: carry.NotSent, Class: fdengine.ErrUnavailable, Cause: os.ErrDeadlineExceeded})
	require.NoError(t, err)
	require.Equal(t, notSent, w)
}

// All kinds of trouble are in every long round.
func TestARoundOfAsManyTroublesAsKindsHasEachOfThem(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range choose(tally.Rand(3), len(kinds), 1e9) {
		seen[p.kind] = true
	}
	require.Len(t, seen, len(kinds))
	require.Equal(t, choose(tally.Rand(3), 30, 1e9), choose(tally.Rand(3), 30, 1e9), "the same seed, the same choices")
	require.NotEqual(t, choose(tally.Rand(3), 30, 1e9), choose(tally.Rand(4), 30, 1e9))
}
