package differential

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"
)

// verb is a command of a job server. Those from reserve on are for the connection that holds the jobs.
type verb uint8

const (
	put verb = iota
	peek
	peekReady
	peekDelayed
	peekBuried
	kick
	kickJob
	pause
	statsJob
	statsTube
	stats
	listTubes

	reserve
	reserveJob
	deleteHeld
	deleteID
	release
	bury
	touch
	touchGone // a job that is not held any more
	watch
	ignore
)

// jobOp is one command; a field that the verb has no use for is empty.
type jobOp struct {
	verb  verb
	tube  string
	body  []byte
	pri   uint32
	delay time.Duration // or of a pause
	ttr   time.Duration
	id    uint64
	n     int // bound of a kick; or which of the held jobs, modulo their number
}

func (o *jobOp) String() string {
	return fmt.Sprintf("verb %d tube %s id %d n %d pri %d delay %v body %s", o.verb, o.tube, o.id, o.n, o.pri, o.delay, quote(string(o.body)))
}

// jobPiece is commands that go the same way: by the producer, or one at a time by the consumer.
type jobPiece struct {
	manner  manner
	consume bool
	ops     []jobOp
	first   int
}

type jobProgram struct {
	pieces []jobPiece
	size   int
	puts   int
}

// jobTubes are those that exist; another one that a program names does not.
var jobTubes = []string{"default", "t1", "t2", "a-rather-long+name/of.a;tube$_()"}

// A job's time to run and its delay do not end while the test runs, and two different delays end in the same order
// on both servers however long that takes.
const (
	longTTR  = 100_000 * time.Second
	delayBy  = 100_000 * time.Second
	delayGap = 2_000 * time.Second
)

// maxJob is the server's limit for the body of a job.
const maxJob = 20_000

type jobWriter struct {
	*rand.Rand
	p    *jobProgram
	used map[verb]int
}

func writeJobs(seed uint64, n int) (*jobProgram, map[verb]int) {
	w := &jobWriter{Rand: rand.New(rand.NewPCG(seed, 77)), p: &jobProgram{}, used: map[verb]int{}}
	for w.p.size < n {
		pc := w.piece(n - w.p.size)
		pc.first = w.p.size
		w.p.size += len(pc.ops)
		w.p.pieces = append(w.p.pieces, pc)
	}
	return w.p, w.used
}

func (w *jobWriter) piece(room int) jobPiece {
	pc := jobPiece{manner: []manner{submit, submit, stream, batch, do}[w.IntN(5)], consume: w.IntN(2) == 0}
	size := 1 + w.IntN(min(120, room))
	if pc.consume {
		size = 1 + w.IntN(min(60, room))
	}
	for range size {
		o := w.op(pc.consume)
		w.used[o.verb]++
		pc.ops = append(pc.ops, o)
	}
	return pc
}

func (w *jobWriter) op(consume bool) jobOp {
	o := jobOp{pri: uint32(w.IntN(6)), n: w.IntN(1 << 20), id: 1 + uint64(w.IntN(w.p.puts+3)), tube: jobTubes[w.IntN(len(jobTubes))]}
	if w.IntN(3) == 0 {
		o.delay = delayBy + time.Duration(w.IntN(20))*delayGap
	}
	if consume {
		o.verb = []verb{reserve, reserve, reserve, reserve, reserveJob, deleteHeld, deleteHeld, deleteHeld, deleteID, release, release,
			bury, touch, touchGone, watch, ignore}[w.IntN(16)]
		return o
	}
	switch o.verb = []verb{put, put, put, put, put, put, put, peek, peekReady, peekDelayed, peekBuried, kick, kickJob, pause, statsJob,
		statsJob, statsTube, stats, listTubes}[w.IntN(19)]; o.verb {
	case put:
		o.body, o.ttr = w.body(), longTTR+time.Duration(w.IntN(100))*time.Second
		if w.IntN(200) == 0 {
			o.pri = 1<<32 - 1
		}
		if len(o.body) <= maxJob {
			w.p.puts++
		}
	case kick:
		o.n %= 5
	case pause:
		if o.delay = 0; w.IntN(3) == 0 {
			o.delay = longTTR
		}
	}
	if (o.verb == statsTube || o.verb == pause) && w.IntN(5) == 0 {
		o.tube = "nobody-has-this-one"
	}
	return o
}

func (w *jobWriter) body() []byte {
	switch n := w.IntN(100); {
	case n < 3:
		return bytesOf(w.Rand, maxJob+1+w.IntN(40_000))
	case n < 4:
		return bytesOf(w.Rand, maxJob)
	case n < 10:
		return []byte{}
	case n < 20:
		return []byte([]string{"\r\n", "\r\nNOT_FOUND\r\n", "delete 1\r\n", "\x00", "INSERTED 7\r\n"}[w.IntN(5)])
	case n < 40:
		return bytesOf(w.Rand, w.IntN(3000))
	}
	return fmt.Appendf(nil, "job %d", w.IntN(1000))
}

// stable are the statistics that depend on nothing but the commands that this package gives: not on the clock, and
// not on what a client asks for itself when it connects.
const stable = ` id tube state pri delay ttr file reserves timeouts releases buries kicks ` +
	`name current-jobs-urgent current-jobs-ready current-jobs-reserved current-jobs-delayed current-jobs-buried total-jobs ` +
	`current-using current-waiting cmd-delete cmd-pause-tube pause ` +
	`cmd-put cmd-peek cmd-peek-ready cmd-peek-delayed cmd-peek-buried cmd-reserve cmd-release cmd-bury cmd-touch ` +
	`cmd-kick cmd-stats cmd-stats-job cmd-stats-tube cmd-list-tubes job-timeouts max-job-size current-tubes draining `

// renderStats writes the stable ones of name and value pairs, without the id of a server, which it draws by lot.
func renderStats(of verb, each iter.Seq2[string, string]) string {
	d := dict{}
	for name, value := range each {
		if strings.Contains(stable, " "+name+" ") && (of != stats || name != "id") {
			d = append(d, [2]any{name, value})
		}
	}
	return render(d)
}
