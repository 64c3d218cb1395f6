package redis

import "time"

// Text is what keys and values may be.
type Text interface{ string | []byte }

// put adds a string or bytes without boxing.
func put[T Text](c *Cmd, v T) *Cmd {
	switch v := any(v).(type) {
	case string:
		return c.Arg(v)
	case []byte:
		return c.ArgBytes(v)
	}
	return c
}

func putAll[T Text](c *Cmd, vs []T) *Cmd {
	for _, v := range vs {
		put(c, v)
	}
	return c
}

// Ping answers PONG.
func Ping() *Cmd { return Build("PING") }

// Echo answers its message.
func Echo[T Text](message T) *Cmd { return put(Build("ECHO"), message) }

// Get reads a string value; Nil when there is none.
func Get(key string) *Cmd { return FillGet(new(Cmd), key) }

// Set stores a value. Options are added with Arg and ArgInt, such as Arg("PX").ArgInt(1500); other options than
// the expiry make it NoRetry.
func Set[T Text](key string, value T) *Cmd { return FillSet(new(Cmd), key, value) }

// Incr adds one and answers the sum. NoRetry.
func Incr(key string) *Cmd { return FillIncr(new(Cmd), key) }

// IncrBy adds n and answers the sum. NoRetry.
func IncrBy(key string, n int64) *Cmd { return FillIncrBy(new(Cmd), key, n) }

// Del removes keys and answers how many there were. NoRetry, because a second run answers another number.
func Del(keys ...string) *Cmd { return FillDel(new(Cmd), keys...) }

// Exists answers how many of the keys exist.
func Exists(keys ...string) *Cmd { return putAll(Build("EXISTS"), keys) }

// Expire lets a key expire after d, to the millisecond, rounded up. NoRetry, because a second run prolongs it.
func Expire(key string, d time.Duration) *Cmd { return FillExpire(new(Cmd), key, d) }

// LPush puts values before the head of a list and answers its length. NoRetry.
func LPush[T Text](key string, values ...T) *Cmd { return FillLPush(new(Cmd), key, values...) }

// RPush puts values behind the tail of a list and answers its length. NoRetry.
func RPush[T Text](key string, values ...T) *Cmd { return FillRPush(new(Cmd), key, values...) }

// HSet sets fields of a hash, given as field, value, field, value ... and answers how many are new. NoRetry,
// because a second run answers another number.
func HSet[T Text](key string, fieldsAndValues ...T) *Cmd {
	return FillHSet(new(Cmd), key, fieldsAndValues...)
}

// HGet reads a field of a hash; Nil when there is none.
func HGet(key, field string) *Cmd { return Build("HGET").Arg(key).Arg(field) }

// HGetAll reads a whole hash; see Cmd.Map.
func HGetAll(key string) *Cmd { return Build("HGETALL").Arg(key) }

// SAdd adds members to a set and answers how many are new. NoRetry, because a second run answers another number.
func SAdd[T Text](key string, members ...T) *Cmd { return FillSAdd(new(Cmd), key, members...) }

// XAdd appends an entry to a stream under id, "*" to let the server choose it, and answers the id. The entry is
// given as field, value, field, value ... NoRetry: with a chosen id a second run is refused, with "*" it
// appends twice.
func XAdd[T Text](stream, id string, fieldsAndValues ...T) *Cmd {
	return FillXAdd(new(Cmd), stream, id, fieldsAndValues...)
}

// Publish sends a message to the subscribers of a channel and answers how many there are. NoRetry.
func Publish[T Text](channel string, message T) *Cmd { return FillPublish(new(Cmd), channel, message) }
