package redis

import "time"

// The functions here are those of build.go for a Cmd that is used again: each makes c that command, as Reset does,
// in the memory that it has. With a Cmd that has grown to its size they allocate nothing.

// FillGet is Get.
func FillGet(c *Cmd, key string) *Cmd {
	return c.Reset("GET").Arg(key)
}

// FillSet is Set.
func FillSet[T Text](c *Cmd, key string, value T) *Cmd {
	return put(c.Reset("SET").Arg(key), value)
}

// FillIncr is Incr.
func FillIncr(c *Cmd, key string) *Cmd {
	return c.Reset("INCR").Arg(key)
}

// FillIncrBy is IncrBy.
func FillIncrBy(c *Cmd, key string, n int64) *Cmd {
	return c.Reset("INCRBY").Arg(key).ArgInt(n)
}

// FillDel is Del.
func FillDel(c *Cmd, keys ...string) *Cmd {
	return putAll(c.Reset("DEL"), keys)
}

// FillExpire is Expire.
func FillExpire(c *Cmd, key string, d time.Duration) *Cmd {
	return c.Reset("PEXPIRE").Arg(key).ArgInt(millis(d))
}

// FillLPush is LPush.
func FillLPush[T Text](c *Cmd, key string, values ...T) *Cmd {
	return putAll(c.Reset("LPUSH").Arg(key), values)
}

// FillRPush is RPush.
func FillRPush[T Text](c *Cmd, key string, values ...T) *Cmd {
	return putAll(c.Reset("RPUSH").Arg(key), values)
}

// FillHSet is HSet.
func FillHSet[T Text](c *Cmd, key string, fieldsAndValues ...T) *Cmd {
	return putAll(c.Reset("HSET").Arg(key), fieldsAndValues)
}

// FillSAdd is SAdd.
func FillSAdd[T Text](c *Cmd, key string, members ...T) *Cmd {
	return putAll(c.Reset("SADD").Arg(key), members)
}

// FillXAdd is XAdd.
func FillXAdd[T Text](c *Cmd, stream, id string, fieldsAndValues ...T) *Cmd {
	return putAll(c.Reset("XADD").Arg(stream).Arg(id), fieldsAndValues)
}

// FillPublish is Publish.
func FillPublish[T Text](c *Cmd, channel string, message T) *Cmd {
	return put(c.Reset("PUBLISH").Arg(channel), message)
}

// millis is d in milliseconds, rounded up.
func millis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}
