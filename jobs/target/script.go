package target

import (
	"crypto/sha1"
	"encoding/hex"
)

// script adds a job unless its id is in the set of ids. KEYS: the stream or list, the set. ARGV: the id, the command
// that adds, and its arguments behind the key. Both effects or none: the server runs a script in one piece, and
// writes it to its log and to its replicas in one piece too. When the command fails the id is taken out again. The
// answer is 0 when the id was there, else that of the command, which is never 0. It is refused whole or not at all, as
// redis.RefusedWhole wants: its first write decides, and a refusal of the second is taken back.
const script = `if redis.call('SADD', KEYS[2], ARGV[1]) == 0 then return 0 end
local put = redis.pcall(ARGV[2], KEYS[1], unpack(ARGV, 3))
if type(put) == 'table' and put.err then redis.call('SREM', KEYS[2], ARGV[1]) end
return put`

// scriptDigest is the name that the server gives the script.
var scriptDigest = digest(script) // never written

func digest(s string) string {
	sum := sha1.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}
