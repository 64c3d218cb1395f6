package redis

import (
	"strings"

	"github.com/fdengine/fullduplex/carry"
)

// entry is what the table knows about a command, or about a subcommand of one.
type entry struct {
	class   carry.Class
	why     barrier
	options options
	wait    waitForm // of those that block: where the time is that the server may hold the reply
	known   bool     // it is in the table
	script  bool     // its reply may be the words of a user's script
	subs    bool     // the second word decides: look for NAME|SUB first
	key     keyRule  // where its first key is
}

// options names the arguments that change what an entry says.
type options uint8

const (
	plain       options = iota
	setOptions          // SET: all but the expiry ones make the effect depend on what is there
	readOptions         // XREAD: BLOCK before STREAMS blocks
)

// group is a part of the table: words that share an entry. A subcommand is written NAME|SUB.
type group struct {
	entry entry
	words string
}

// longestWord bounds the words of the table; what is longer is not in it.
const longestWord = 40

// table is groups by word. It is never written after it was built.
var table = buildTable(groups())

func buildTable(gs []group) map[string]entry {
	t := make(map[string]entry)
	for _, g := range gs {
		for word := range strings.FieldsSeq(g.words) {
			if _, twice := t[word]; twice || len(word) > longestWord {
				panic("redis: command table: " + word)
			}
			e := g.entry
			e.subs = t[word].subs
			e.known = true
			e.script = word == "EVAL" || word == "EVALSHA" || word == "FCALL"
			t[word] = e
		}
	}
	for word := range t {
		if parent, _, ok := strings.Cut(word, "|"); ok {
			e := t[parent]
			e.subs = true
			t[parent] = e
		}
	}
	setKeys(t, keyGroups())
	return t
}

// lookup finds the entry of a command and applies its options. It allocates nothing. The word found is returned
// for messages: it points into words.
func lookup(a *args, words *[longestWord]byte) (entry, []byte) {
	walk := a.walk()
	name := appendUpper(words[:0], walk.next())
	e := table[string(name)]
	if e.subs && a.count() > 1 {
		if full := appendUpper(append(name, '|'), walk.next()); full != nil {
			if sub, ok := table[string(full)]; ok {
				return sub, full
			}
		}
		return entry{}, name
	}
	switch e.options {
	case setOptions:
		if !onlyExpiry(a) {
			e.class = carry.NoRetry
		}
	case readOptions:
		if blockAt(a) > 0 {
			e.why = blocks
		}
	}
	return e, name
}

// onlyExpiry says whether a SET has no other options than those that set the expiry of the new value.
func onlyExpiry(a *args) bool {
	if a.count() <= 3 {
		return true
	}
	walk := a.walk()
	walk.skip(3)
	for i := 3; i < a.count(); i += 2 {
		word := walk.next()
		if !isWord(word, "EX") && !isWord(word, "PX") && !isWord(word, "EXAT") && !isWord(word, "PXAT") {
			return false
		}
		if i+1 < a.count() {
			walk.next() // its number
		}
	}
	return true
}
