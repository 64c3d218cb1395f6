package beanstalkd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/internal/testserver"
)

// Each command is answered by exactly one reply, of a kind that its row in the table has: one that were not would
// shift the replies of those behind it, or cut the connection.
// Covers: S0-44
func TestEveryCommandDoesOnARealServerWhatItsRowSays(t *testing.T) {
	srv := testserver.StartBeanstalkd(t)
	c := realClient(t, srv.Addr(), func(o *Options) { o.Tube = "mine" })
	w := realConsumer(t, srv.Addr(), func(o *Options) { o.Tube = "mine" }, "mine")
	seen := map[string]bool{}
	did := func(names ...string) {
		for _, n := range names {
			seen[n] = true
		}
	}
	count := func(id uint64, name string) int64 {
		st, err := c.StatsJob(bg, id)
		require.NoError(t, err)
		n, err := st.Int(name)
		require.NoError(t, err)
		return n
	}

	id, err := c.Put(bg, &Put{Body: []byte("one"), Priority: 5, TTR: 90 * time.Second})
	require.NoError(t, err)
	require.EqualValues(t, 5, count(id, "pri"))
	require.EqualValues(t, 90, count(id, "ttr"))
	later, err := c.Put(bg, &Put{Body: []byte("later"), Delay: time.Hour})
	require.NoError(t, err)
	require.EqualValues(t, 3600, count(later, "delay"))
	did("put", "stats-job")

	got, err := c.Peek(bg, id)
	require.NoError(t, err)
	require.Equal(t, Peeked{id, []byte("one")}, got)
	got, err = c.PeekReady(bg, "")
	require.NoError(t, err)
	require.Equal(t, Peeked{id, []byte("one")}, got)
	got, err = c.PeekDelayed(bg, "mine")
	require.NoError(t, err)
	require.Equal(t, Peeked{later, []byte("later")}, got)
	_, err = c.PeekBuried(bg, "")
	require.ErrorIs(t, err, ErrNotFound)
	did("peek", "peek-ready", "peek-delayed", "peek-buried")

	j, err := w.Reserve(bg)
	require.NoError(t, err)
	require.Equal(t, "one", string(j.Body))
	require.NoError(t, j.Touch(bg))
	require.NoError(t, j.Release(bg, 6, 0))
	require.EqualValues(t, 6, count(id, "pri"))
	j, err = w.ReserveWithTimeout(bg, time.Minute)
	require.NoError(t, err)
	require.NoError(t, j.Bury(bg, 7))
	got, err = c.PeekBuried(bg, "")
	require.NoError(t, err)
	require.Equal(t, id, got.ID)
	n, err := c.Kick(bg, "", 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, c.KickJob(bg, later))
	require.ErrorIs(t, c.KickJob(bg, later), ErrNotFound)
	j, err = w.ReserveJob(bg, later)
	require.NoError(t, err)
	require.NoError(t, j.Delete(bg))
	require.ErrorIs(t, j.Delete(bg), ErrReservationLost)
	require.NoError(t, w.Do(bg, Delete(id)), "nobody has reserved it")
	_, err = w.ReserveWithTimeout(bg, 0)
	require.ErrorIs(t, err, ErrTimedOut)
	did("reserve", "reserve-with-timeout", "reserve-job", "touch", "release", "bury", "delete", "kick", "kick-job")

	n, err = w.Watch(bg, "other")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	watched := ListTubesWatched()
	require.NoError(t, w.Do(bg, watched))
	list, err := watched.List()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"mine", "other"}, list)
	n, err = w.Ignore(bg, "mine")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = w.Ignore(bg, "other")
	require.ErrorIs(t, err, ErrNotIgnored)
	used := ListTubeUsed()
	require.NoError(t, c.Do(bg, used))
	name, err := used.Text()
	require.NoError(t, err)
	require.Equal(t, "mine", name)
	list, err = c.ListTubes(bg)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"default", "mine", "other"}, list)
	did("watch", "ignore", "list-tubes-watched", "list-tube-used", "list-tubes", "use")

	require.NoError(t, c.PauseTube(bg, "mine", 1500*time.Millisecond))
	st, err := c.StatsTube(bg, "mine")
	require.NoError(t, err)
	pause, err := st.Int("pause")
	require.NoError(t, err)
	require.EqualValues(t, 2, pause)
	require.ErrorIs(t, c.PauseTube(bg, "nobody", 0), ErrNotFound)
	_, err = c.StatsTube(bg, "nobody")
	require.ErrorIs(t, err, ErrNotFound)
	st, err = c.Stats(bg)
	require.NoError(t, err)
	size, err := st.Int("max-job-size")
	require.NoError(t, err)
	require.EqualValues(t, DefaultMaxJobSize, size)
	version, ok := st.Text("version")
	require.True(t, ok)
	require.NotContains(t, version, `"`)
	_, err = st.Int("version-of-nothing")
	require.Error(t, err)
	did("pause-tube", "stats-tube", "stats")

	require.EqualValues(t, 1, c.Usage().Pool.Dials, "in step to the end")
	require.EqualValues(t, 1, w.Usage().Pool.Dials)
	require.NoError(t, c.Ping(bg))
	for id := noVerb + 1; id < verbs; id++ {
		require.True(t, seen[table[id].name], "%s was not run", table[id].name)
	}
}

// Covers: E-31
func TestTheTableHasEveryCommandThatTheServerCounts(t *testing.T) {
	srv := testserver.StartBeanstalkd(t)
	c := realClient(t, srv.Addr(), nil)
	st, err := c.Stats(bg)
	require.NoError(t, err)
	known := map[string]verb{"put": {}, "use": {why: watches}} // Put's, and the handshake's or that of a Put in a tube
	for id := noVerb + 1; id < verbs; id++ {
		known[table[id].name] = table[id]
	}
	counted := 0
	for _, p := range st {
		name, ok := strings.CutPrefix(p.Key, "cmd-")
		if !ok {
			continue
		}
		counted++
		require.Contains(t, known, name)
	}
	require.GreaterOrEqual(t, counted, 20)
	for name, v := range known {
		shared := v.why == shares
		wants := !slices.Contains([]string{"reserve", "reserve-with-timeout", "reserve-job", "delete", "release", "bury", "touch", "watch", "ignore", "use"}, name)
		require.Equal(t, wants, shared, name)
	}
	require.ErrorIs(t, c.Do(bg, Reserve()), ErrNotShared)
	require.Zero(t, newWitness(t, srv.Addr()).stat("stats", "cmd-reserve"))
}

// Covers: E-38
func TestRandomCommandsGetTheRepliesThatTheyGetOneAtATime(t *testing.T) {
	alone, shared := testserver.StartBeanstalkd(t), testserver.StartBeanstalkd(t)
	w := newWitness(t, alone.Addr())
	c := realClient(t, shared.Addr(), func(o *Options) { o.MaxJobSize = -1 })
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		var want []string
		var cmds []fdengine.Command
		puts := 0
		add := func(cmd fdengine.Command, format string, args ...any) {
			cmds = append(cmds, cmd)
			want = append(want, w.ask(format, args...))
		}
		for range 200 {
			id := uint64(rng.IntN(round*80+40) + 1)
			switch rng.IntN(10) {
			case 0, 1, 2, 3:
				p := &Put{Body: []byte(bait(rng.IntN(3000))), Priority: rng.Uint32(), TTR: time.Minute}
				if rng.IntN(3) == 0 {
					p.Delay = time.Hour
				}
				if rng.IntN(20) == 0 {
					p.Body = make([]byte, DefaultMaxJobSize+1)
				}
				puts++
				add(p, "put %d %d 60 %d\r\n%s", p.Priority, p.Delay/time.Second, len(p.Body), p.Body)
			case 4:
				add(Peek(id), "peek %d", id)
			case 5:
				add(PeekReady(""), "peek-ready")
			case 6:
				add(PeekDelayed(""), "peek-delayed")
			case 7:
				add(Kick("", 2), "kick 2")
			case 8:
				add(KickJob(id), "kick-job %d", id)
			default:
				add(StatsTube("none"), "stats-tube none")
			}
		}
		errs := make([]error, len(cmds))
		_ = c.DoBatch(bg, cmds, errs) // the errors are compared below
		for i := range cmds {
			require.Equal(t, want[i], wire(cmds[i], errs[i]), "command %d of round %d, %T", i, round, cmds[i])
		}
	}
	require.EqualValues(t, 1, c.Usage().Pool.Dials)
}

// wire is a reply as the server spelled it, from what the command made of it.
func wire(cmd fdengine.Command, err error) string {
	if se, ok := err.(*ServerError); ok {
		return se.Code
	}
	if err != nil {
		return err.Error()
	}
	switch c := cmd.(type) {
	case *Put:
		return fmt.Sprintf("INSERTED %d", c.ID)
	case *Cmd:
		switch c.id {
		case vKick:
			return fmt.Sprintf("KICKED %d", c.number)
		case vKickJob:
			return "KICKED"
		}
		id, body, _ := c.Job()
		return fmt.Sprintf("FOUND %d %d\r\n%s", id, len(body), body)
	}
	return "?"
}

func TestManyTubesOnARealServerEachGetTheirJobs(t *testing.T) {
	srv := testserver.StartBeanstalkd(t)
	c := realClient(t, srv.Addr(), func(o *Options) { o.ManyTubes = true })
	var cmds []fdengine.Command
	for i := range 2000 {
		cmds = append(cmds, &Put{Body: fmt.Appendf(nil, "%d", i), Tube: fmt.Sprintf("t%d", i%7)})
	}
	require.NoError(t, c.DoBatch(bg, cmds, nil))
	total := 0
	for k := range 7 {
		jobs := newWitness(t, srv.Addr()).drain(fmt.Sprintf("t%d", k))
		for body := range jobs {
			var i int
			_, err := fmt.Sscan(body, &i)
			require.NoError(t, err)
			require.Equal(t, k, i%7)
		}
		total += len(jobs)
	}
	require.Equal(t, 2000, total)
}

// C46 a.
func TestBodiesOfEverySizeComeBackExactFromARealServer(t *testing.T) {
	srv := testserver.StartBeanstalkd(t, "-z", "70000")
	c := realClient(t, srv.Addr(), func(o *Options) { o.MaxJobSize = 70000 })
	var sizes []int
	for n := 0; n <= 2100; n++ {
		sizes = append(sizes, n)
	}
	for _, at := range []int{4096, 8192, 16384, 65536} {
		for n := at - 40; n <= at+40; n++ {
			sizes = append(sizes, n)
		}
	}
	puts, peeks := make([]fdengine.Command, len(sizes)), make([]fdengine.Command, len(sizes))
	for i, n := range sizes {
		puts[i] = &Put{Body: []byte(bait(n))}
	}
	require.NoError(t, c.DoBatch(bg, puts, nil))
	for i := range puts {
		peeks[i] = Peek(puts[i].(*Put).ID)
	}
	g := fdengine.NewGroup()
	g.Add(len(peeks))
	n, err := c.SubmitBatch(bg, peeks, g)
	require.NoError(t, err)
	require.Len(t, peeks, n)
	require.NoError(t, g.Wait(bg))
	for i, n := range sizes {
		id, body, err := peeks[i].(*Cmd).Job()
		require.NoError(t, err)
		require.Equal(t, puts[i].(*Put).ID, id)
		if string(body) != bait(n) {
			t.Fatalf("body of %d bytes came back with %d", n, len(body))
		}
	}
	require.EqualValues(t, 1, c.Usage().Pool.Dials)
}

// C46 b.
func TestAJobThatIsTooBigIsRefusedOnTheSameConnectionAndTheNextIsStored(t *testing.T) {
	srv := testserver.StartBeanstalkd(t, "-z", "1000")
	c := realClient(t, srv.Addr(), func(o *Options) { o.MaxJobSize = -1 })
	errs := make([]error, 3)
	err := c.DoBatch(bg, []fdengine.Command{
		&Put{Body: []byte("a")}, &Put{Body: []byte(strings.Repeat("\r\nput 0 0 1 1\r\nx\r\n", 1000)), Replay: true}, &Put{Body: []byte("b")},
	}, errs)
	require.ErrorIs(t, err, ErrJobTooBig)
	require.Equal(t, carry.Answered, fdengine.FateOf(err))
	require.NoError(t, errs[0])
	require.NoError(t, errs[2])
	require.EqualValues(t, 1, c.Usage().Pool.Dials)
	w := newWitness(t, srv.Addr())
	require.Equal(t, 3, w.stat("stats", "cmd-put"))
	require.Equal(t, map[string]int{"a": 1, "b": 1}, w.drain("default"))
}

// A body that were not counted right would be read as requests.
func TestABodyOfRequestsIsData(t *testing.T) {
	srv := testserver.StartBeanstalkd(t)
	c := realClient(t, srv.Addr(), nil)
	body := "\r\nput 0 0 1 4\r\nevil\r\nquit\r\n"
	_, err := c.Put(bg, &Put{Body: []byte(body)})
	require.NoError(t, err)
	require.Equal(t, map[string]int{body: 1}, newWitness(t, srv.Addr()).drain("default"))
}

// Covers: E-22
func TestADecoderThatFailsCostsItsOwnCommandOnlyOnARealServer(t *testing.T) {
	srv := testserver.StartBeanstalkd(t)
	c := realClient(t, srv.Addr(), nil)
	errs := decodeErrors(t, c)
	require.Equal(t, carry.Answered, fdengine.FateOf(errs[0]))
	require.EqualValues(t, 1, c.Usage().Pool.Dials)
}

// Covers: E-36
func TestAJobLargerThanEveryBufferPassesAndOneOverMaxReplyIsNotAskedForAgain(t *testing.T) {
	const size = 8 << 20
	srv := testserver.StartBeanstalkd(t, "-z", fmt.Sprint(size))
	c := realClient(t, srv.Addr(), func(o *Options) { o.MaxJobSize = size })
	body := []byte(bait(size))
	id, err := c.Put(bg, &Put{Body: body})
	require.NoError(t, err)
	got, err := c.Peek(bg, id)
	require.NoError(t, err)
	require.True(t, string(body) == string(got.Body))

	small := realClient(t, srv.Addr(), func(o *Options) { o.Engine.MaxReply = size / 2 })
	_, err = small.Peek(bg, id)
	require.ErrorIs(t, err, fdengine.ErrTooLarge)
	require.Equal(t, carry.Answered, fdengine.FateOf(err))
	require.NoError(t, small.Ping(bg))
	u := small.Usage()
	require.EqualValues(t, 1, u.Engine.Cuts)
	require.EqualValues(t, 2, u.Pool.Dials)
	require.Equal(t, 2, newWitness(t, srv.Addr()).stat("stats", "cmd-peek"))
}
