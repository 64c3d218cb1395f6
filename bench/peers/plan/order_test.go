package plan

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/bench/peers/load"
)

// order is the labels of the rows of one round.
func order(t *Table, bars []Bar, earlier *Table, round int) (out []string) {
	for _, r := range t.Order(bars, earlier, round) {
		out = append(out, r.Label)
	}
	return out
}

func TestWhatABarComparesIsMeasuredWithoutAnythingBetween(t *testing.T) {
	bars := []Bar{bar(t, "B1.64"), bar(t, "B7.64")}
	table := Set(Tables(size)).Table("blocking.64")
	for i := range table.Rows {
		table.Rows[i].Results = cpu("", 1000-float64(i)).Results // what comes later is cheaper
	}
	first := order(table, bars, nil, 0)
	require.Len(t, first, len(table.Rows))
	require.Equal(t, []string{Again, ours}, first[len(first)-2:], "nobody knows yet who is good")
	packs := map[int][]string{}
	for round := 1; round < 3; round++ {
		got := order(table, bars, nil, round)
		require.Len(t, got, len(table.Rows)-2, "limits without I/O have one round")
		packs[round] = got[len(got)-5:]
		at := func(label string) int { return slices.Index(got, label) }
		require.Equal(t, 1, max(at(ours)-at("radix 150us"), at("radix 150us")-at(ours)), "the cheapest: %v", got)
		require.Equal(t, 1, max(at(ours)-at("radix"), at("radix")-at(ours)), "the best tail: %v", got)
		require.Less(t, at("rueidis"), len(got)-5, "%v", got)
	}
	slices.Reverse(packs[2])
	require.Equal(t, packs[1], packs[2], "the other way round each time")
}

func TestTheFirstRoundGoesByAnEarlierResult(t *testing.T) {
	table := Set(Tables(size)).Table("blocking.16")
	earlier := &Table{ID: "blocking.16", Rows: []Row{cpu(ours, 1), cpu("radix", 5), cpu("rueidis", 9)}}
	got := order(table, []Bar{bar(t, "B2")}, earlier, 0)
	require.Equal(t, []string{"radix", ours, "rueidis"}, got[len(got)-3:])
}

func TestOnlyWhatIsComparedHasFurtherRounds(t *testing.T) {
	bars := []Bar{bar(t, "B2")}
	table := Set(Tables(size)).Table("blocking.16")
	require.Equal(t, size.Rounds, table.Common())
	for i := range table.Rows {
		r := &table.Rows[i]
		for range r.Rounds {
			r.Results = append(r.Results, cpu("", 100+float64(i)).Results...)
		}
	}
	require.Empty(t, table.Order(bars, nil, size.Rounds))
	table.Extend(bars)
	require.ElementsMatch(t, []string{ours, "rueidis", "rueidis 20us"}, order(table, bars, nil, size.Rounds))
	require.Len(t, table.Order(bars, nil, size.Compared-1), 3)
	require.Empty(t, table.Order(bars, nil, size.Compared))
}

func TestGroupsAreMeasuredOneAfterTheOther(t *testing.T) {
	table := Set(Tables(size)).Table("open.null")
	table.Elect(nil, Set{{ID: "blocking.1024", Rows: []Row{cpu(ours, 1), cpu("radix", 3), cpu("valkey-go", 2), cpu("rueidis", 4)}}})
	require.Equal(t, []string{
		"fullduplex capacity", "valkey-go capacity", "radix capacity",
		"fullduplex 10 %", "valkey-go 10 %", "radix 10 %", "noop 10 %",
		"fullduplex 50 %", "valkey-go 50 %", "radix 50 %", "noop 50 %",
		"fullduplex 90 %", "valkey-go 90 %", "radix 90 %", "noop 90 %",
		"fullduplex same rate", "valkey-go same rate", "radix same rate", "noop same rate",
	}, order(table, Bars(), nil, 0))
	require.Equal(t, []string{"radix 10 %", "valkey-go 10 %", "fullduplex 10 %"}, order(table, Bars(), nil, 1)[3:6])

	require.Zero(t, table.Rate(table.Row("radix 50 %")), "nobody knows yet")
	table.Row("radix capacity").Results = []load.Result{{Rate: 1000}, {Rate: 3000}, {Rate: 2000}}
	require.Equal(t, 1000.0, table.Rate(table.Row("radix 50 %")))
	require.Zero(t, table.Rate(table.Row("radix capacity")), "it takes what it can")
	table.Row("fullduplex capacity").Results = []load.Result{{Rate: 9000}}
	table.Row("radix 50 %").Results = []load.Result{{Rate: 1}}
	require.Equal(t, 1000.0, table.Rate(table.Row("fullduplex same rate")), "half of what the slowest takes")
}

func TestThePeersOfTheExtraTablesAreTheBestOfThisRunElseOfAnEarlierOne(t *testing.T) {
	elected := func(now, earlier Set) (out []string) {
		table := Set(Tables(size)).Table("large")
		table.Elect(now, earlier)
		for _, r := range table.Rows {
			if isPeer(&r) && !slices.Contains(out, r.Contender) {
				out = append(out, r.Contender)
			}
		}
		return out
	}
	now := Set{{ID: "blocking.64", Rows: []Row{cpu(ours, 1), cpu("radix", 3), cpu("rueidis", 4)}}}
	earlier := Set{{ID: "blocking.64", Rows: []Row{cpu(ours, 1), cpu("valkey-go", 3), cpu("rueidis 20us", 4)}}}
	require.Equal(t, []string{"rueidis", "radix"}, elected(now, earlier))
	require.Equal(t, []string{"rueidis 20us", "valkey-go"}, elected(nil, earlier))
	require.Equal(t, []string{"rueidis 20us", "go-redis auto"}, elected(nil, nil))
}

func TestAnOpenBarComparesAtTheSameShareOfCapacity(t *testing.T) {
	table := Set(Tables(size)).Table("open.redis")
	for i := range table.Rows {
		table.Rows[i].Results = []load.Result{{P99: 1000}}
	}
	table.Row("fullduplex 50 %").Results[0].P99 = 500
	table.Row("radix 50 %").Results[0].P99 = 800
	table.Row("fullduplex same rate").Results[0].P99 = 250
	o := bar(t, "OPEN.redis.50").Judge(Set{*table})
	require.Equal(t, "radix 50 %", o.Against)
	require.InDelta(t, 0.625, *o.Ratio, 1e-9)
	require.InDelta(t, 0.25, *bar(t, "OPEN.redis.same").Judge(Set{*table}).Ratio, 1e-9)
	require.InDelta(t, 1, *bar(t, "OPEN.redis.90").Judge(Set{*table}).Ratio, 1e-9)
}

func TestWhatALongWayAllowsIsTheWindowUntilTheCPUsAreTheBound(t *testing.T) {
	table := Set(Tables(size)).Table(farTable)
	table.Row(farRow(1024)).Results = []load.Result{{Rate: 50_000}, {Rate: 51_200}, {Rate: 40_000}}
	table.Row(farRow(65536)).Results = []load.Result{{Rate: 900_000}}
	table.Row(nearRow).Results = []load.Result{{Rate: 1_000_000}}
	require.Equal(t, "bar FAR.1024 ratio=0.98 spread=0.78..1.00 must=0.90 goal=0.95 ok", judge(t, "FAR.1024", *table))
	require.Equal(t, "bar FAR.65536 ratio=0.90 spread=0.90..0.90 goal=0.90 ok", judge(t, "FAR.65536", *table))
	require.Equal(t, nearRow, bar(t, "FAR.65536").Judge(Set{*table}).Against)
	table.Row(wayRow).Results = []load.Result{{Rate: 40}, {Rate: 48}, {Rate: 47}} // the round trip is one of 20.8 ms
	require.Equal(t, "bar FAR.1024 ratio=1.02 spread=0.81..1.04 must=0.90 goal=0.95 ok", judge(t, "FAR.1024", *table))
	table.Row(wayRow).Results = []load.Result{{Rate: 60}} // no shorter than the delay
	require.Equal(t, "bar FAR.1024 ratio=0.98 spread=0.78..1.00 must=0.90 goal=0.95 ok", judge(t, "FAR.1024", *table))
	for _, r := range table.Rows {
		require.Equal(t, 2*r.Cell.Engine, r.Cell.Window, "the window is what holds back")
	}
}

func TestMemoryBeforeASlowServerIsMeasuredByTheLimits(t *testing.T) {
	table := Set(Tables(size)).Table(slowTable)
	table.Row(slowRow(1024)).Results = []load.Result{{Peak: 120, Limit: 100}}
	require.Equal(t, "bar SLOW.1024 ratio=1.20 spread=1.20..1.20 must=1.50 ok", judge(t, "SLOW.1024", *table))
}

func TestARunHasTheTimeItMayTake(t *testing.T) {
	full := Tables(size)
	require.Less(t, Estimate(full, Bars(), size, FullBudget), 30*time.Minute)
	quick := Size{Cell: 250 * time.Millisecond, Rounds: 3, Compared: 3, Pairs: 5, Extra: 1}
	few := Tables(quick)
	known := Tables(quick)
	for i := range known {
		for j := range known[i].Rows {
			known[i].Rows[j].Results = cpu("", 1+float64(j)).Results
		}
	}
	Narrow(few, Bars(), known)
	require.Less(t, Estimate(few, Bars(), quick, QuickBudget), 4*time.Minute)
}

func TestRowsAreShownByTheRoundsThatAllOfThemTook(t *testing.T) {
	table := Table{Rows: []Row{cpu(ours, 1, 2, 3, 90, 91, 92, 93), cpu("rueidis", 4, 5, 6), cpu("raw limit", 7, 8), cpu("radix")}}
	require.Equal(t, 3, table.Shared())
	require.Equal(t, 2.0, table.Median(table.Row(ours), CPU), "further rounds may have been slower")
	require.Equal(t, 7.5, table.Median(table.Row("raw limit"), CPU))
	require.True(t, math.IsNaN(table.Median(table.Row("nobody"), CPU)))
}
