package redis

// Key returns the first key of the command as the server will see it, and false when it has none. Of a publishing
// command it is the channel. A command that the class table does not know, of a module or a newer server, is taken to
// have its key right behind its name or subcommand, as most have.
//
// The bytes belong to the command until it is changed; a key of 16 KiB or more that was added as a string is copied.
// Key implements lanes.Keyed.
func (c *Cmd) Key() (key []byte, ok bool) {
	if c.args.count() < 2 {
		return nil, false
	}
	c.look()
	rule := c.entry.key
	if !c.entry.known {
		rule = behindName
		if c.args.hasSubs() {
			rule = behindSub
		}
	}
	at := rule.find(&c.args)
	if at == 0 || at >= c.args.count() {
		return nil, false
	}
	return c.args.bytes(at), true
}

// Key is the first key of the first command that has one: the whole transaction goes where that belongs.
func (t *Tx) Key() (key []byte, ok bool) {
	for _, c := range t.cmds {
		if key, ok = c.Key(); ok {
			return key, true
		}
	}
	return nil, false
}

// hasSubs says whether the name is that of a command with subcommands.
func (a *args) hasSubs() bool {
	var words [longestWord]byte
	walk := a.walk()
	return table[string(appendUpper(words[:0], walk.next()))].subs
}

// bytes is argument at, which must be there.
func (a *args) bytes(at int) []byte {
	walk := a.walk()
	walk.skip(at)
	if b := walk.next(); b != nil {
		return b
	}
	l := a.larges()[walk.large-1]
	if l.b != nil {
		return l.b
	}
	return []byte(l.s)
}

// keyRule says where the first key of a command is.
type keyRule uint8

const (
	noKey      keyRule = iota
	behindName         // argument 1
	behindSub          // argument 2, of those with a subcommand or something like it
	countAt1           // argument 2, if the number before it says that there are keys
	countAt2           // argument 3, likewise
	streamsOf          // behind STREAMS
	migrated           // argument 3, or behind KEYS when that is empty
)

// find is the position of the first key; 0 when there is none. It may lie behind the last argument.
func (r keyRule) find(a *args) int {
	switch r {
	case behindName:
		return 1
	case behindSub:
		return 2
	case countAt1:
		return counted(a, 1)
	case countAt2:
		return counted(a, 2)
	case streamsOf:
		return streamAt(a)
	case migrated:
		return migrateAt(a)
	}
	return 0
}

// counted is the position behind the number of keys; 0 when that is zero.
func counted(a *args, at int) int {
	if at >= a.count() {
		return 0
	}
	walk := a.walk()
	walk.skip(at)
	for _, c := range walk.next() {
		if c != '0' {
			return at + 1
		}
	}
	return 0
}

// streamAt is the position behind STREAMS of an XREAD or XREADGROUP.
func streamAt(a *args) int {
	walk := a.walk()
	walk.skip(1)
	for i := 1; i < a.count(); i++ {
		word, behind := walk.next(), 0
		switch {
		case isWord(word, "STREAMS"):
			return i + 1
		case isWord(word, "COUNT"), isWord(word, "BLOCK"):
			behind = 1
		case isWord(word, "GROUP"):
			behind = 2
		}
		behind = min(behind, a.count()-1-i)
		walk.skip(behind)
		i += behind
	}
	return 0
}

// migrateAt is the position of the first key of a MIGRATE.
func migrateAt(a *args) int {
	if a.count() <= 3 {
		return 0
	}
	walk := a.walk()
	walk.skip(3)
	if key := walk.next(); key == nil || len(key) > 0 {
		return 3
	}
	skip := min(2, a.count()-4) // database and timeout
	walk.skip(skip)
	for i := 4 + skip; i < a.count(); i++ {
		word, behind := walk.next(), 0
		switch {
		case isWord(word, "KEYS"):
			return i + 1
		case isWord(word, "AUTH"):
			behind = 1
		case isWord(word, "AUTH2"):
			behind = 2
		}
		behind = min(behind, a.count()-1-i)
		walk.skip(behind)
		i += behind
	}
	return 0
}
