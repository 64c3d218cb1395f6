package plan

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fdengine/fullduplex/bench/peers/contend"
	"github.com/fdengine/fullduplex/bench/peers/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var size = Size{Cell: time.Second, Rounds: 3, Compared: 5, Pairs: 9, Extra: 3}

// cpu is a row that took so many nanoseconds in each round.
func cpu(label string, ns ...float64) Row {
	r := Row{Label: label, Contender: label}
	for _, v := range ns {
		r.Results = append(r.Results, load.Result{CPU: v, Rate: 1e9 / v, P99: 100 * v})
	}
	return r
}

func bar(t *testing.T, id string) Bar {
	t.Helper()
	bars, err := Choose([]string{id})
	require.NoError(t, err)
	return bars[0]
}

func judge(t *testing.T, id string, tables ...Table) string {
	t.Helper()
	return bar(t, id).Judge(tables).String()
}

func TestABarIsTheMedianOfTheRatiosOfSingleRoundsToTheBestPeer(t *testing.T) {
	blocking := func(us ...float64) Table {
		return Table{ID: "blocking.64", Rows: []Row{
			cpu("raw limit", 1), cpu("noop", 1), cpu(ours, us...), cpu(oursRaw, 1), cpu("rueidis", 900, 1000, 5000), cpu("go-redis pool", 9000),
		}}
	}
	require.Equal(t, "bar B1.64 ratio=0.50 spread=0.11..0.52 must=0.75 goal=0.60 ok", judge(t, "B1.64", blocking(100, 520, 2500)),
		"a slow phase in which both were measured does not count")
	require.Equal(t, "bar B1.64 ratio=0.75 spread=0.15..0.75 must=0.75 goal=0.60 ok", judge(t, "B1.64", blocking(679, 754, 754)), "compared as it is printed")
	require.Equal(t, "bar B1.64 ratio=0.84 spread=0.78..0.90 must=0.75 goal=0.60 SHORT", judge(t, "B1.64", blocking(700, 900)), "an even number of rounds")
	require.Equal(t, "bar B1.64 ratio=- must=0.75 goal=0.60 unmeasured", judge(t, "B1.64"))
	require.Equal(t, "bar B1.64 ratio=- must=0.75 goal=0.60 unmeasured", judge(t, "B1.64", Table{ID: "blocking.64", Rows: []Row{cpu(ours, 1)}}))
	require.Equal(t, "bar B1.64 ratio=0.50 spread=0.10..0.58 must=0.75 goal=0.60 ok", judge(t, "B1.64", blocking(520, 500, 500, 9000, 9000, 9000, 9000)),
		"rounds that the peer did not take part in do not count")
	o := bar(t, "B1.64").Judge(Set{blocking(520, 520, 520)})
	require.Equal(t, "rueidis", o.Against)
	require.True(t, o.Reached)
}

func TestTheBestPeerIsTheOneBesideWhichTheEngineLooksWorst(t *testing.T) {
	// By medians the first would be the best one; it was lucky to be measured in fast phases.
	o := bar(t, "B1.64").Judge(Set{{ID: "blocking.64", Rows: []Row{
		cpu(ours, 100, 300, 100), cpu("rueidis", 190, 600, 190), cpu("valkey-go", 195, 550, 180),
	}}})
	require.Equal(t, "valkey-go", o.Against)
	require.InDelta(t, 0.545, *o.Ratio, 0.001)
}

func TestABarOfRatesIsMetFromAbove(t *testing.T) {
	one := func(us float64) Table {
		return Table{ID: "blocking.1", Rows: []Row{cpu(ours, us), cpu("rueidis", 100), cpu("rueidis 20us", 50), cpu("go-redis pool", 40)}}
	}
	require.Equal(t, "bar B3 ratio=1.00 spread=1.00..1.00 must=0.95 ok", judge(t, "B3", one(50)), "the pool does not multiplex")
	require.Equal(t, "bar B3 ratio=0.50 spread=0.50..0.50 must=0.95 SHORT", judge(t, "B3", one(100)))
	require.Equal(t, "bar B3.sync ratio=0.80 spread=0.80..0.80 goal=0.90 open", judge(t, "B3.sync", one(50)))
	require.Equal(t, "bar B3.sync ratio=1.00 spread=1.00..1.00 goal=0.90 ok", judge(t, "B3.sync", one(40)))
}

func TestTheAsynchronousBarTakesTheBestFaceOfAnyPeer(t *testing.T) {
	async := func(who string, ns float64) Row {
		r := cpu(asynchronous(who), ns)
		r.Contender, r.Cell = who, &load.Spec{Face: load.Async}
		return r
	}
	table := Table{ID: batchTable, Rows: []Row{
		cpu(ours, 250), cpu("rueidis", 300), cpu("radix", 500), async(ours, 150), async("go-redis auto", 600), async("raw limit", 25),
	}}
	require.Equal(t, "bar B4 ratio=0.50 spread=0.50..0.50 must=0.55 goal=0.35 ok", judge(t, "B4", table))
	require.Equal(t, "bar B4.raw ratio=6.00 spread=6.00..6.00 goal=4.00 open", judge(t, "B4.raw", table))
	table.Rows[4] = async("go-redis auto", 200)
	require.Equal(t, "bar B4 ratio=0.75 spread=0.75..0.75 must=0.55 goal=0.35 SHORT", judge(t, "B4", table))
	require.Equal(t, "rueidis", bar(t, "B5").Judge(Set{table}).Against, "a batch is compared with batches")
}

func TestATailIsShortOnlyBeyondTheNoise(t *testing.T) {
	tails := func(again ...float64) Table {
		a := cpu(Again, again...)
		a.Contender = ours
		return Table{ID: "blocking.64", Rows: []Row{
			cpu(ours, 80, 160, 80), cpu("rueidis", 100, 200, 100), cpu("rueidis 20us", 10, 10, 10), a,
		}}
	}
	require.Equal(t, "bar B7.64 ratio=0.80 spread=0.80..0.80 must=0.70 goal=0.40 noise=1.00 SHORT", judge(t, "B7.64", tails(80, 160, 80)),
		"a peer that is not in its default setting does not count")
	require.Equal(t, "bar B7.64 ratio=0.80 spread=0.80..0.80 must=0.70 goal=0.40 noise=1.25 noise", judge(t, "B7.64", tails(100, 200, 64)))
}

func TestAbsoluteBars(t *testing.T) {
	row := cpu(ours, 100, 100, 100)
	row.Results[0].Allocs, row.Results[1].Allocs = 0.004, 0.08
	require.Equal(t, "bar B8.do ratio=0.00 spread=0.00..0.08 must=0.00 goal=0.00 ok", judge(t, "B8.do", Table{ID: "blocking.64", Rows: []Row{row}}))
	row.Results[2].Allocs = 0.08
	require.Equal(t, "bar B8.do ratio=0.08 spread=0.00..0.08 must=0.00 goal=0.00 SHORT", judge(t, "B8.do", Table{ID: "blocking.64", Rows: []Row{row}}))
	again, steady := cpu(replayRow, 120), cpu(underWay(replayed), 100)
	again.Results[0].InFlight, again.Results[0].Encoded = 220, 107
	table := Table{ID: windowsTable, Rows: []Row{again, steady}}
	require.Equal(t, "bar B10.memory ratio=113.00 spread=113.00..113.00 must=128.00 ok", judge(t, "B10.memory", table))
	require.Equal(t, "bar B10 ratio=1.20 spread=1.20..1.20 must=2.00 goal=1.20 ok", judge(t, "B10", table))
}

func TestTheFlatBarIsTheDearestOverTheCheapestInTheSameRounds(t *testing.T) {
	table := Table{ID: windowsTable}
	for i, n := range windows {
		ns := 100 + float64(10*i)
		table.Rows = append(table.Rows, cpu(underWay(n), ns, 5*ns, ns)) // the machine is slow in the second round
	}
	require.Equal(t, "bar B12 ratio=1.30 spread=1.30..1.30 must=1.50 goal=1.20 ok", judge(t, "B12", table))
	table.Rows[3].Results = nil
	require.Contains(t, judge(t, "B12", table), "unmeasured")
}

func TestEveryBarFindsItsTablesAndRows(t *testing.T) {
	tables := Tables(size)
	for i := range tables {
		for j, r := range tables[i].Rows {
			c, err := contend.Find(r.Contender)
			require.NoError(t, err)
			tables[i].Rows[j].Results = cpu("", 100).Results
			tables[i].Rows[j].Results[0].InFlight, tables[i].Rows[j].Results[0].Limit = 1, 1
			require.Positive(t, r.Rounds)
			require.True(t, tables[i].Server != "beanstalkd" || c.Server != "resp", r.Label)
		}
	}
	for _, t2 := range tables {
		if t2.BestOf == "" && t2.ID != farTable && t2.ID != slowTable {
			for _, limit := range []string{"wake floor", "noop"} {
				require.NotNil(t, t2.Row(limit), "%s has no %s", t2.ID, limit)
			}
		}
	}
	seen := map[string]bool{}
	for _, b := range Bars() {
		require.False(t, seen[b.ID], b.ID)
		seen[b.ID] = true
		o := b.Judge(tables)
		require.NotEqual(t, Unmeasured, o.State, b.ID)
		require.False(t, math.IsNaN(b.Must) && math.IsNaN(b.Goal), b.ID)
	}
	require.Len(t, Needed(Tables(size), Bars()), len(tables), "no table is for nothing")
	b2, err := Choose([]string{"B2"})
	require.NoError(t, err)
	needed := Needed(Tables(size), b2)
	require.Len(t, needed, 1)
	require.Equal(t, "blocking.16", needed[0].ID)
}

func TestAQuickRunKeepsTheTwoBestPeersOfEachBar(t *testing.T) {
	bars := Bars()
	tables := Needed(Tables(size), bars)
	earlier := Set{
		{ID: "blocking.16", Rows: []Row{cpu("radix", 9), cpu("rueidis", 2), cpu("valkey-go", 1), cpu("go-redis pool", 3)}},
		{ID: "blocking.64", Rows: []Row{
			cpu("rueidis 20us", 1), cpu("valkey-go 20us", 2), cpu("rueidis", 4), cpu("valkey-go", 5), cpu("radix", 6),
		}},
		{ID: "redis.256", Rows: []Row{cpu("rueidis", 1)}},
	}
	Narrow(tables, bars, earlier)
	kept := func(id string) (out []string) {
		for _, r := range Set(tables).Table(id).Rows {
			out = append(out, r.Label)
		}
		return out
	}
	limits := []string{"raw limit", "wake floor", "noop", ours, oursRaw}
	require.Equal(t, append(slices.Clone(limits), "rueidis", "valkey-go"), kept("blocking.16"))
	require.Equal(t, append(slices.Clone(limits), "rueidis", "rueidis 20us", "valkey-go", "valkey-go 20us", Again), kept("blocking.64"),
		"two for the CPU and two for the tail")
	require.Equal(t, append(slices.Clone(limits), onOne(ours), onOne(wakeRow)), kept("redis.256"), "its bars compare no peers")
	require.Contains(t, kept("blocking.256"), "radix", "nothing is known about it")
}

func TestRowsOnOneCPUStandBesideARealRedisOnly(t *testing.T) {
	for _, t2 := range Tables(size) {
		alone := 0
		for _, r := range t2.Rows {
			if one := t2.Spec(&r).Procs == 1; one {
				alone++
				require.Equal(t, onOne(r.Contender), r.Label)
				require.Equal(t, t2.Cell.Callers, t2.Spec(&r).Callers)
			} else {
				require.NotContains(t, r.Label, "one CPU")
			}
		}
		require.Equal(t, t2.Server == "redis" && t2.Cell.Face == load.Blocking, alone > 0, t2.ID)
	}
	redis := Table{ID: "redis.256", Rows: []Row{cpu(ours, 1), cpu(onOne(ours), 1), cpu(rawRow, 1)}}
	for i, rate := range []float64{46, 80, 100} {
		redis.Rows[i].Results[0].Rate = rate
	}
	require.Equal(t, "bar B6.256 ratio=0.46 spread=0.46..0.46 must=0.85 goal=0.95 SHORT", judge(t, "B6.256", redis))
	require.Equal(t, "bar B6.one.256 ratio=0.80 spread=0.80..0.80 goal=0.85 open", judge(t, "B6.one.256", redis))
}

func TestUnknownBarsAndSizesAreRefused(t *testing.T) {
	_, err := Choose([]string{"B1", "B99"})
	require.ErrorContains(t, err, "B99")
	b, err := Choose([]string{"B1"})
	require.NoError(t, err)
	require.Len(t, b, 4)
	require.NoError(t, size.Validate())
	for _, s := range []Size{{}, {Cell: time.Second}, {Cell: time.Second, Rounds: 1}, {Cell: time.Hour, Rounds: 1, Compared: 1, Pairs: 1, Extra: 1}} {
		require.Error(t, s.Validate(), "%+v", s)
	}
}
