package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// magic begins every state file.
const magic = "jobsub-state 1 "

// A state file is lines of text. The first is magic and the Origin as JSON; each further one is what was flushed at
// once: fields separated by spaces. All end with " #" and their own checksum in hex.
//
//	s=512 h=90a1..   lines up to 512 may be sent from now on; hash of the input up to there
//	t=17,19          of earlier lines, these may be sent from now on
//	a=1-80,83        acknowledged
//	k=83             of those, the target had them already
//	f=81-82          certainly not taken
//	d=17             lines in doubt that are sent again all the same from now on
//	r=5              this run, or an earlier one, may send a job so often again that may have been taken
//
// A last line whose end is missing or whose checksum is wrong was being written when the process or the machine
// died, and does not count: what it announced had not begun, and what it acknowledged is in doubt.

// seal appends checksum and line end.
func seal(text []byte) []byte {
	return fmt.Appendf(text, " #%08x\n", crc32.ChecksumIEEE(text))
}

var errChecksum = errors.New("checksum does not match")

// unseal returns the text of a line without its line end.
func unseal(line string) (string, error) {
	text, sum, ok := cutLast(line, " #")
	if !ok {
		return "", errChecksum
	}
	if n, err := strconv.ParseUint(sum, 16, 32); err != nil || len(sum) != 8 || uint32(n) != crc32.ChecksumIEEE([]byte(text)) {
		return "", errChecksum
	}
	return text, nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func encodeOrigin(o Origin) ([]byte, error) {
	b, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return seal(append([]byte(magic), b...)), nil
}

func decodeOrigin(line string) (o Origin, err error) {
	text, err := unseal(line)
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal([]byte(strings.TrimPrefix(text, magic)), &o)
}

// record is one line behind the first.
type record struct {
	sent  int64 // 0: not said
	hash  uint64
	tried Set
	acked Set
	known Set
	free  Set
	twice Set
	again int64
}

func (r *record) empty() bool {
	n := 0
	for _, f := range r.sets() {
		n += len(f.set.r)
	}
	return r.sent == 0 && r.again == 0 && n == 0
}

func (r *record) reset() {
	r.sent, r.hash, r.again = 0, 0, 0
	for _, f := range r.sets() {
		f.set.clear()
	}
}

type field struct {
	name string
	set  *Set
}

func (r *record) sets() [5]field {
	return [5]field{{"t=", &r.tried}, {"a=", &r.acked}, {"k=", &r.known}, {"f=", &r.free}, {"d=", &r.twice}}
}

func (r *record) encode() []byte {
	var b []byte
	if r.sent > 0 {
		b = fmt.Appendf(b, "s=%d h=%016x", r.sent, r.hash)
	}
	if r.again > 0 {
		if len(b) > 0 {
			b = append(b, ' ')
		}
		b = fmt.Appendf(b, "r=%d", r.again)
	}
	for _, f := range r.sets() {
		if len(f.set.r) == 0 {
			continue
		}
		if len(b) > 0 {
			b = append(b, ' ')
		}
		b = append(b, f.name...)
		for i, x := range f.set.r {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, x.First, 10)
			if x.Last > x.First {
				b = strconv.AppendInt(append(b, '-'), x.Last, 10)
			}
		}
	}
	return seal(b)
}

func decodeRecord(line string) (r record, err error) {
	text, err := unseal(line)
	if err != nil {
		return r, err
	}
	for word := range strings.FieldsSeq(text) {
		if err := r.decodeField(word); err != nil {
			return r, fmt.Errorf("%q: %w", word, err)
		}
	}
	return r, nil
}

func (r *record) decodeField(word string) (err error) {
	if len(word) < 3 {
		return errors.New("no field")
	}
	name, value := word[:2], word[2:]
	switch name {
	case "s=":
		r.sent, err = strconv.ParseInt(value, 10, 64)
		return err
	case "h=":
		r.hash, err = strconv.ParseUint(value, 16, 64)
		return err
	case "r=":
		r.again, err = strconv.ParseInt(value, 10, 64)
		return err
	}
	for _, f := range r.sets() {
		if f.name != name {
			continue
		}
		for part := range strings.SplitSeq(value, ",") {
			first, last, more := strings.Cut(part, "-")
			if !more {
				last = first
			}
			a, err := strconv.ParseInt(first, 10, 64)
			if err != nil {
				return err
			}
			b, err := strconv.ParseInt(last, 10, 64)
			if err != nil {
				return err
			}
			if a < 1 || b < a {
				return errors.New("no range of lines")
			}
			f.set.Add(a, b)
		}
		return nil
	}
	return errors.New("unknown field")
}
