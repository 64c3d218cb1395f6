package beanstalkd

import (
	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/proto/beanstalk"
)

// barrier is why a command must not share a connection; zero: it may.
type barrier uint8

const (
	shares barrier = iota
	waits
	reserves
	held
	watches
)

// describe says what such a command would do and what to use in its place.
func (b barrier) describe() (why, instead string) {
	switch b {
	case waits:
		return "would keep the replies of all other callers waiting", "use Consumer.Reserve or ReserveWithTimeout"
	case reserves:
		return "would reserve a job for a connection that nobody works on", "use Consumer.ReserveJob"
	case held:
		return "is for a job that the connection itself has reserved", "use the methods of Job, or for a job that nobody has reserved Delete with Consumer.Do"
	case watches:
		return "would change what a connection reserves from", "use Consumer.Watch or Ignore"
	}
	return "", ""
}

// verb is what the table knows about a command.
type verb struct {
	name  string
	class carry.Class
	why   barrier
	tubed bool // acts on the tube in use
	can   replies
}

type verbID uint8

const (
	noVerb verbID = iota
	vPeek
	vPeekReady
	vPeekDelayed
	vPeekBuried
	vKick
	vKickJob
	vPauseTube
	vStats
	vStatsJob
	vStatsTube
	vListTubes
	vListTubeUsed
	vListTubesWatched
	vReserve
	vReserveWithTimeout
	vReserveJob
	vDelete
	vRelease
	vBury
	vTouch
	vWatch
	vIgnore
	verbs // how many there are
)

// table is the command table. Replay means: run twice in a row it leaves the same and gives the same reply as run
// once. `put` and `use` are Put's. On a lent connection a reserve that was lost with it may be sent again, since the
// job went back with it; so may watch and ignore.
//
// The table is never written.
var table = [verbs]verb{
	vPeek:               {name: "peek", class: carry.Replay, can: setOf(beanstalk.Found, beanstalk.NotFound)},
	vPeekReady:          {name: "peek-ready", class: carry.Replay, tubed: true, can: setOf(beanstalk.Found, beanstalk.NotFound)},
	vPeekDelayed:        {name: "peek-delayed", class: carry.Replay, tubed: true, can: setOf(beanstalk.Found, beanstalk.NotFound)},
	vPeekBuried:         {name: "peek-buried", class: carry.Replay, tubed: true, can: setOf(beanstalk.Found, beanstalk.NotFound)},
	vKick:               {name: "kick", tubed: true, can: setOf(beanstalk.Kicked)},
	vKickJob:            {name: "kick-job", can: setOf(beanstalk.Kicked, beanstalk.NotFound)},
	vPauseTube:          {name: "pause-tube", can: setOf(beanstalk.Paused, beanstalk.NotFound)},
	vStats:              {name: "stats", class: carry.Replay, can: setOf(beanstalk.OK)},
	vStatsJob:           {name: "stats-job", class: carry.Replay, can: setOf(beanstalk.OK, beanstalk.NotFound)},
	vStatsTube:          {name: "stats-tube", class: carry.Replay, can: setOf(beanstalk.OK, beanstalk.NotFound)},
	vListTubes:          {name: "list-tubes", class: carry.Replay, can: setOf(beanstalk.OK)},
	vListTubeUsed:       {name: "list-tube-used", class: carry.Replay, can: setOf(beanstalk.Using)},
	vListTubesWatched:   {name: "list-tubes-watched", class: carry.Replay, can: setOf(beanstalk.OK)},
	vReserve:            {name: "reserve", class: carry.Replay, why: waits, can: setOf(beanstalk.Reserved, beanstalk.DeadlineSoon)},
	vReserveWithTimeout: {name: "reserve-with-timeout", class: carry.Replay, why: waits, can: setOf(beanstalk.Reserved, beanstalk.DeadlineSoon, beanstalk.TimedOut)},
	vReserveJob:         {name: "reserve-job", class: carry.Replay, why: reserves, can: setOf(beanstalk.Reserved, beanstalk.NotFound)},
	vDelete:             {name: "delete", why: held, can: setOf(beanstalk.Deleted, beanstalk.NotFound)},
	vRelease:            {name: "release", why: held, can: setOf(beanstalk.Released, beanstalk.Buried, beanstalk.NotFound)},
	vBury:               {name: "bury", why: held, can: setOf(beanstalk.Buried, beanstalk.NotFound)},
	vTouch:              {name: "touch", why: held, can: setOf(beanstalk.Touched, beanstalk.NotFound)},
	vWatch:              {name: "watch", class: carry.Replay, why: watches, can: setOf(beanstalk.Watching)},
	vIgnore:             {name: "ignore", class: carry.Replay, why: watches, can: setOf(beanstalk.Watching, beanstalk.NotIgnored)},
}
