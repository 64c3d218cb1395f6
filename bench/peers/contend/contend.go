// Package contend holds what is compared: one file per contender, each behind the same small interface, each
// checking every reply. Beside the clients there are three limits: the raw connection, which shows what the bytes
// cost, the wake floor, which shows what parking and waking the callers costs, and noop, which shows what the
// measuring costs. It knows how each client is set up and called; it knows nothing of time, rounds or results.
package contend

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

const (
	valueSize = 64  // bytes of a SET's value
	bodySize  = 200 // bytes of a job
)

// Target is what a contender talks to.
type Target struct {
	Addr     string // host:port; limits without I/O ignore it
	InFlight int    // commands that may be under way at once; 0 = a client's own default will do
	Window   int    // the engine only: its window; 0 = what InFlight needs
	Value    int    // bytes of a value; 0 = 64
	Single   bool   // the engine only: asynchronous commands by Submit instead of SubmitBatch
	Get      bool   // Caller reads the value, which the server must have, instead of storing it
}

// value is what every SET stores and every GET must bring.
func (t Target) value() string {
	n := t.Value
	if n == 0 {
		n = valueSize
	}
	return strings.Repeat("v", n)
}

// Client is one connected contender.
type Client interface {
	// Caller returns the handle of the i-th goroutine. It is called before anything is measured.
	Caller(i int) Caller
	Close() error
}

// Caller is used by one goroutine. Call sends one command, or one batch, waits, and checks what came back.
type Caller interface{ Call() error }

// Batcher is a Client that can send several commands at once.
type Batcher interface {
	// Batch returns the handle of the i-th goroutine, each Call of which sends size commands.
	Batch(i, size int) Caller
}

// Streamer is a Client that can keep commands under way without a goroutine for each.
type Streamer interface {
	// Stream prepares to keep up to window commands under way. It is called before anything is measured.
	Stream(window int) (Flow, error)
}

// Flow is used by one goroutine at a time.
type Flow interface {
	// Run keeps commands under way until more says no, waits for the rest, checks, and returns how many were
	// answered. more is asked once for many commands.
	Run(more func() bool) (int64, error)
}

// Counting is a Client that knows how often it wrote and read, whatever system calls it does that with.
type Counting interface{ Calls() (writes, reads int64) }

// Flooder is a Client that can be given more than its server takes.
type Flooder interface {
	// Flood submits commands as fast as they are accepted until the client is closed. answered says how many were
	// answered so far, limit how many bytes may wait and be under way.
	Flood() (answered func() int64, limit int, err error)
}

// Replayer is a Client that can send commands again that were unanswered when their connection was cut.
type Replayer interface {
	// Replay puts n commands under way; full is called before the last of them. wait returns when all are answered.
	// encoded is the length of one on the wire.
	Replay(n int, full func()) (encoded int, wait func() error, err error)
}

// Bulk is a limit that stands for all callers together, whatever the face.
type Bulk interface {
	// All returns a handle of which each Call is depth commands at once.
	All(depth int) Caller
}

// Group says what a contender is.
type Group string

const (
	Ours  Group = "ours"
	Peer  Group = "peer"
	Limit Group = "limit"
)

// Contender is one client in one setting.
type Contender struct {
	Name    string // short, as in tables
	Setting string // what is set, in words
	Group   Group
	Server  string // the kind it speaks to: "resp", "beanstalkd", or "" for any
	Default bool   // a peer as it is out of the box (rueidis and valkey-go: with one connection)
	Sync    bool   // a peer that gives each caller a connection of its own while it waits
	NoIO    bool   // it needs no server
	Open    func(ctx context.Context, t Target) (Client, error)
}

// All lists the contenders, limits first.
func All() []Contender {
	return slices.Concat(limits(), ours(), rueidisPeers(), valkeyPeers(), goredisPeers(), goredisAutoPeers(), radixPeers(),
		beanstalkContenders())
}

// Find returns the contender of that name.
func Find(name string) (Contender, error) {
	all := All()
	i := slices.IndexFunc(all, func(c Contender) bool { return c.Name == name })
	if i < 0 {
		return Contender{}, fmt.Errorf("contend: there is no %q", name)
	}
	return all[i], nil
}

// key is 16 bytes for every i below a million.
func key(i int) string { return fmt.Sprintf("bench:key:%06d", i%1_000_000) }

// wrong reports a reply that is not the one that was due.
func wrong(who, got string) error { return fmt.Errorf("%s: the reply is %.40q", who, got) }

const ok = "OK"
