package beanstalkd

import (
	"fmt"
	"math"
	"time"
)

// Peek shows a job; see Cmd.Job. ErrNotFound when there is none of that id.
func Peek(id uint64) *Cmd { return ofJob(vPeek, id) }

// PeekReady shows the next ready job of a tube, empty for the client's.
func PeekReady(tube string) *Cmd { return ofTube(vPeekReady, tube) }

// PeekDelayed shows the delayed job of a tube that becomes ready first.
func PeekDelayed(tube string) *Cmd { return ofTube(vPeekDelayed, tube) }

// PeekBuried shows the next buried job of a tube.
func PeekBuried(tube string) *Cmd { return ofTube(vPeekBuried, tube) }

// Kick makes at most bound jobs of a tube ready, buried ones or else delayed ones; see Cmd.Count. NoRetry.
func Kick(tube string, bound int) *Cmd {
	c := ofTube(vKick, tube)
	if bound < 0 || bound > math.MaxInt32 {
		c.bad = fmt.Errorf("beanstalkd: the bound of a kick is %d, it must be 0 to %d", bound, math.MaxInt32)
	}
	c.prio = uint32(bound)
	return c
}

// KickJob makes a buried or delayed job ready. NoRetry, because a second run does not find it.
func KickJob(id uint64) *Cmd { return ofJob(vKickJob, id) }

// PauseTube lets no job of a tube be reserved for d, in whole seconds, rounded up. NoRetry, because a second run
// prolongs it.
func PauseTube(tube string, d time.Duration) *Cmd {
	c := ofTube(vPauseTube, tube)
	c.seconds, c.bad = seconds("the time of a pause", d)
	return c
}

// ServerStats asks for the statistics of the server; see Cmd.Stats.
func ServerStats() *Cmd { return newCmd(vStats) }

// StatsJob asks for the statistics of a job.
func StatsJob(id uint64) *Cmd { return ofJob(vStatsJob, id) }

// StatsTube asks for the statistics of a tube.
func StatsTube(tube string) *Cmd { return ofTube(vStatsTube, tube) }

// ListTubes asks which tubes there are; see Cmd.List.
func ListTubes() *Cmd { return newCmd(vListTubes) }

// ListTubeUsed asks which tube the connection uses; see Cmd.Text.
func ListTubeUsed() *Cmd { return newCmd(vListTubeUsed) }

// ListTubesWatched asks which tubes the connection watches; see Cmd.List.
func ListTubesWatched() *Cmd { return newCmd(vListTubesWatched) }

// Delete removes a job that nobody has reserved, by Consumer.Do. One that a Consumer has reserved is deleted by its
// Job. NoRetry: a server started again without binlog may have given the id to another job.
func Delete(id uint64) *Cmd { return ofJob(vDelete, id) }

// The commands below act on what a connection holds. They are refused by everything that shares one; a Consumer has
// methods for them.

// Reserve waits for a job.
func Reserve() *Cmd { return newCmd(vReserve) }

// ReserveWithTimeout waits for a job, for d at most, in whole seconds, rounded up.
func ReserveWithTimeout(d time.Duration) *Cmd {
	c := newCmd(vReserveWithTimeout)
	c.seconds, c.bad = seconds("the time of a reserve", d)
	if c.bad == nil && c.seconds > math.MaxInt32 {
		c.bad = fmt.Errorf("beanstalkd: the time of a reserve is %v, it must be at most %d s", d, math.MaxInt32)
	}
	return c
}

// ReserveJob reserves the job of that id.
func ReserveJob(id uint64) *Cmd { return ofJob(vReserveJob, id) }

// Release gives a reserved job back.
func Release(id uint64, priority uint32, delay time.Duration) *Cmd {
	c := ofJob(vRelease, id)
	c.prio = priority
	c.seconds, c.bad = seconds("the delay of a release", delay)
	return c
}

// Bury puts a reserved job aside.
func Bury(id uint64, priority uint32) *Cmd {
	c := ofJob(vBury, id)
	c.prio = priority
	return c
}

// Touch gives a reserved job its time to run anew.
func Touch(id uint64) *Cmd { return ofJob(vTouch, id) }

// Watch adds a tube to those that jobs are reserved from.
func Watch(tube string) *Cmd { return ofTube(vWatch, tube) }

// Ignore takes a tube from them.
func Ignore(tube string) *Cmd { return ofTube(vIgnore, tube) }

func ofJob(v verbID, id uint64) *Cmd {
	c := newCmd(v)
	c.job = id
	return c
}

func ofTube(v verbID, tube string) *Cmd {
	c := newCmd(v)
	c.tube = tube
	return c
}
