package differential

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
)

// lua are scripts of two keys and two arguments. Those that answer a map have one entry: the order is not a table's.
// None answers with an error whose code means that a server refused a command, BUSY or MOVED: the library takes the
// script's word for the server's and sends the command again.
var lua = []string{
	`return ARGV[1]`,
	`return {1, 'two', {3, {ARGV[1]}}, false, 'behind'}`,
	`return redis.call('GET', KEYS[1])`,
	`redis.call('SET', KEYS[1], ARGV[1]); return redis.call('APPEND', KEYS[1], ARGV[2])`,
	`return redis.pcall('INCR', KEYS[1])`,
	`return {redis.pcall('INCR', KEYS[1]), redis.pcall('LLEN', KEYS[2])}`,
	`redis.call('SET', KEYS[1], 'first'); return redis.call('LPUSH', KEYS[1], ARGV[1])`,
	`return redis.error_reply('MINE for ' .. ARGV[2])`,
	`return redis.status_reply('FINE')`,
	`return {double = tonumber(ARGV[2]) and 1.25 or 3}`,
	`return {map = {only = {double = 0.5}}}`,
	`return {set = {}}`,
	`return {verbatim_string = {format = 'txt', string = ARGV[1]}}`,
	`return {big_number = '123456789012345678901234567890'}`,
	`return true`,
	`return false`,
	`return nil`,
	`return {}`,
	`return ''`,
	`return 3.99`,
	`redis.setresp(3); return redis.call('ZSCORE', KEYS[1], 'm1')`,
	`redis.setresp(3); return {redis.call('HGET', KEYS[2], 'f1'), redis.call('EXISTS', KEYS[1])}`,
	`error('raised')`,
	`error({err = 'CODED by a table'})`,
	`this is not lua`,
	`local n = 0; for i = 1, 100 do n = n + i end; return n`,
	`return redis.call('LRANGE', KEYS[2], 0, -1)`,
	`return string.rep(ARGV[1], 3)`,
	`return redis.sha1hex(ARGV[1])`,
	`return cjson.encode({ARGV[1] == 'v1', ARGV[2]})`,
}

// source is a script that no other caller has, since they all share the server's cache of scripts.
func (w *writer) source() string {
	return fmt.Sprintf("%s -- %d.%d", lua[w.IntN(len(lua))], w.caller, w.IntN(3))
}

// lua gives the words about scripts their meaning.
func (w *writer) lua(name string) (any, bool) {
	switch name {
	case "lua":
		return w.source(), true
	case "digest":
		sum := sha1.Sum([]byte(w.source()))
		return hex.EncodeToString(sum[:]), true
	case "library":
		return fmt.Sprintf("#!lua name=lib%d\n"+
			"redis.register_function('add%d', function(keys, args) return redis.pcall('APPEND', keys[1], args[1]) end)\n"+
			"redis.register_function{function_name='look%d', callback=function(keys) return {redis.call('TYPE', keys[1]), %d} end, flags={'no-writes'}}",
			w.caller, w.caller, w.caller, w.IntN(5)), true
	case "function":
		return fmt.Sprintf("%s%d", []string{"add", "look", "nothing"}[w.IntN(3)], w.caller), true
	}
	return nil, false
}
