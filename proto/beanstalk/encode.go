package beanstalk

import "strconv"

// The functions here append one request, line end included, and return the result. Only their arguments can vary:
// numbers are numbers, names are checked, and a body is counted, so that nothing in them can be taken for another
// request. A name that no tube can have is a *NameError, and dst comes back as it was. They allocate only to grow
// dst. Times are whole seconds; priorities are the more urgent the smaller they are.

// MaxOverhead bounds the bytes that AppendPut adds to a body.
const MaxOverhead = len("put 4294967295 4294967295 4294967295 \r\n\r\n") + 20

// AppendPut stores a job. The server takes a time to run of 0 for 1.
func AppendPut(dst []byte, priority, delay, ttr uint32, body []byte) []byte {
	dst = append(dst, "put "...)
	dst = appendNumber(dst, priority, ' ')
	dst = appendNumber(dst, delay, ' ')
	dst = appendNumber(dst, ttr, ' ')
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	dst = append(dst, "\r\n"...)
	dst = append(dst, body...)
	return append(dst, "\r\n"...)
}

// AppendUse makes tube the one that puts, kicks and the peeks of a state go to.
func AppendUse(dst []byte, tube string) ([]byte, error) { return named(dst, "use ", tube) }

// AppendWatch adds tube to those that jobs are reserved from.
func AppendWatch(dst []byte, tube string) ([]byte, error) { return named(dst, "watch ", tube) }

// AppendIgnore takes tube from those that jobs are reserved from.
func AppendIgnore(dst []byte, tube string) ([]byte, error) { return named(dst, "ignore ", tube) }

// AppendStatsTube asks for the statistics of a tube.
func AppendStatsTube(dst []byte, tube string) ([]byte, error) { return named(dst, "stats-tube ", tube) }

// AppendPauseTube lets no job of tube be reserved for a time.
func AppendPauseTube(dst []byte, tube string, seconds uint32) ([]byte, error) {
	if err := CheckName(tube); err != nil {
		return dst, err
	}
	dst = append(dst, "pause-tube "...)
	dst = append(dst, tube...)
	dst = append(dst, ' ')
	return end(strconv.AppendUint(dst, uint64(seconds), 10)), nil
}

// AppendReserve waits for a job.
func AppendReserve(dst []byte) []byte { return append(dst, "reserve\r\n"...) }

// AppendReserveWithTimeout waits for a job, but no longer than that.
func AppendReserveWithTimeout(dst []byte, seconds uint32) []byte {
	return one(dst, "reserve-with-timeout ", uint64(seconds))
}

// AppendReserveJob reserves the job with that id, if nobody has.
func AppendReserveJob(dst []byte, id uint64) []byte { return one(dst, "reserve-job ", id) }

// AppendDelete removes a job: one reserved on this connection, or one that is not reserved.
func AppendDelete(dst []byte, id uint64) []byte { return one(dst, "delete ", id) }

// AppendRelease makes a job reserved on this connection ready again, after delay.
func AppendRelease(dst []byte, id uint64, priority, delay uint32) []byte {
	dst = append(dst, "release "...)
	dst = append(strconv.AppendUint(dst, id, 10), ' ')
	dst = appendNumber(dst, priority, ' ')
	return end(strconv.AppendUint(dst, uint64(delay), 10))
}

// AppendBury puts a job reserved on this connection aside until it is kicked.
func AppendBury(dst []byte, id uint64, priority uint32) []byte {
	dst = append(dst, "bury "...)
	dst = append(strconv.AppendUint(dst, id, 10), ' ')
	return end(strconv.AppendUint(dst, uint64(priority), 10))
}

// AppendTouch gives a job reserved on this connection its time to run anew.
func AppendTouch(dst []byte, id uint64) []byte { return one(dst, "touch ", id) }

// AppendPeek shows a job.
func AppendPeek(dst []byte, id uint64) []byte { return one(dst, "peek ", id) }

// AppendPeekReady shows the next ready job of the tube in use.
func AppendPeekReady(dst []byte) []byte { return append(dst, "peek-ready\r\n"...) }

// AppendPeekDelayed shows the delayed job of the tube in use that becomes ready first.
func AppendPeekDelayed(dst []byte) []byte { return append(dst, "peek-delayed\r\n"...) }

// AppendPeekBuried shows the next buried job of the tube in use.
func AppendPeekBuried(dst []byte) []byte { return append(dst, "peek-buried\r\n"...) }

// AppendKick makes at most bound jobs of the tube in use ready: buried ones, or if there are none, delayed ones.
func AppendKick(dst []byte, bound uint32) []byte { return one(dst, "kick ", uint64(bound)) }

// AppendKickJob makes a buried or delayed job ready.
func AppendKickJob(dst []byte, id uint64) []byte { return one(dst, "kick-job ", id) }

// AppendStats asks for the statistics of the server.
func AppendStats(dst []byte) []byte { return append(dst, "stats\r\n"...) }

// AppendStatsJob asks for the statistics of a job.
func AppendStatsJob(dst []byte, id uint64) []byte { return one(dst, "stats-job ", id) }

// AppendListTubes asks which tubes there are.
func AppendListTubes(dst []byte) []byte { return append(dst, "list-tubes\r\n"...) }

// AppendListTubeUsed asks which tube is in use.
func AppendListTubeUsed(dst []byte) []byte { return append(dst, "list-tube-used\r\n"...) }

// AppendListTubesWatched asks which tubes are watched.
func AppendListTubesWatched(dst []byte) []byte { return append(dst, "list-tubes-watched\r\n"...) }

func named(dst []byte, verb, tube string) ([]byte, error) {
	if err := CheckName(tube); err != nil {
		return dst, err
	}
	return end(append(append(dst, verb...), tube...)), nil
}

func one(dst []byte, verb string, n uint64) []byte {
	return end(strconv.AppendUint(append(dst, verb...), n, 10))
}

func appendNumber(dst []byte, n uint32, sep byte) []byte {
	return append(strconv.AppendUint(dst, uint64(n), 10), sep)
}

func end(dst []byte) []byte { return append(dst, "\r\n"...) }
