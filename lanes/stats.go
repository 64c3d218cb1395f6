package lanes

import (
	"strings"

	"github.com/fdengine/fullduplex/fdengine"
)

// Stats is the Sum of the snapshots of all lanes, which are taken one after the other. Commands whose Key failed are
// among those rejected.
func (s *Lanes) Stats() fdengine.Stats {
	all := make([]fdengine.Stats, len(s.lanes))
	for i := range s.lanes {
		all[i] = s.lanes[i].engine.Stats()
	}
	sum := Sum(all...)
	sum.Rejected += s.rejected.Load()
	return sum
}

// Sum adds snapshots up. OldestAge is the largest, and State lists the different states in order, with a slash
// between them.
func Sum(all ...fdengine.Stats) (sum fdengine.Stats) {
	var states []string
	for _, s := range all {
		sum.QueueCommands += s.QueueCommands
		sum.QueueBytes += s.QueueBytes
		sum.InFlightCommands += s.InFlightCommands
		sum.InFlightBytes += s.InFlightBytes
		sum.OldestAge = max(sum.OldestAge, s.OldestAge)
		sum.Accepted += s.Accepted
		sum.Settled += s.Settled
		sum.Answered += s.Answered
		sum.NotSent += s.NotSent
		sum.Maybe += s.Maybe
		sum.Moved += s.Moved
		sum.Rejected += s.Rejected
		sum.Writes += s.Writes
		sum.Reads += s.Reads
		sum.Sent += s.Sent
		sum.Replies += s.Replies
		sum.Replays += s.Replays
		sum.Refusals += s.Refusals
		sum.Redirects += s.Redirects
		sum.Sessions += s.Sessions
		sum.LeaseErrors += s.LeaseErrors
		sum.Cuts += s.Cuts
		sum.Retired += s.Retired
		sum.Panics += s.Panics
		states = addNew(states, s.State)
	}
	sum.State = strings.Join(states, "/")
	return sum
}

func addNew(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}
