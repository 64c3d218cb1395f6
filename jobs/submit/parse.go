package submit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Format says how a line becomes a job.
type Format uint8

const (
	FormatAuto   Format = iota // NDJSON when the first line that is not blank begins with {, else Lines
	FormatNDJSON               // an object with payload (any JSON), id (string or whole number) and queue (string)
	FormatLines                // the line is the payload
)

var formatNames = [...]string{"auto", "ndjson", "lines"} // never written

func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", f)
}

// ParseFormat reads the name of a format.
func ParseFormat(s string) (Format, error) {
	for f, name := range formatNames {
		if s == name {
			return Format(f), nil
		}
	}
	return 0, fmt.Errorf("format %q: want auto, ndjson or lines", s)
}

// parser makes jobs of lines. The slices of a job point into the line or into the parser: they are valid until
// the next call.
type parser struct {
	format Format
	prefix string // of generated ids
	queue  []byte
	id     []byte // scratch
}

func newParser(o Options) *parser {
	return &parser{format: o.Format, prefix: o.IDPrefix, queue: []byte(o.Queue)}
}

// parse returns the job of one line. ok is false for a blank line, which is no job.
func (p *parser) parse(line []byte, number int64) (job Job, ok bool, err error) {
	text := bytes.TrimSpace(line)
	if len(text) == 0 {
		return Job{}, false, nil
	}
	if p.format == FormatAuto {
		p.format = FormatLines
		if text[0] == '{' {
			p.format = FormatNDJSON
		}
	}
	job = Job{Line: number, Queue: p.queue, Payload: line}
	if p.format == FormatNDJSON {
		if !plainObject(text, &job) {
			if err := looseObject(text, &job); err != nil {
				return Job{}, true, err
			}
		}
	}
	job.Own, job.JSON = len(job.ID) > 0, p.format == FormatNDJSON
	if !job.Own {
		p.id = append(p.id[:0], p.prefix...)
		p.id = strconv.AppendInt(p.id, number, 10)
		job.ID = p.id
	}
	return job, true, nil
}

// plainObject takes the usual spelling {"id":"...","queue":"...","payload":...} apart with one pass over the
// payload. It reports false, leaving job as it was, for anything it is not sure of.
func plainObject(text []byte, job *Job) bool {
	id, rest, ok := plainString(text, `{"id":"`)
	if !ok {
		return false
	}
	queue, rest, ok := plainString(rest, `,"queue":"`)
	if !ok {
		return false
	}
	rest, ok = bytes.CutPrefix(rest, []byte(`,"payload":`))
	if !ok {
		return false
	}
	rest, ok = bytes.CutSuffix(rest, []byte("}"))
	// A payload followed by more fields is no single JSON value, so Valid refuses it.
	if !ok || !json.Valid(rest) {
		return false
	}
	job.ID, job.Queue, job.Payload = id, queue, bytes.TrimSpace(rest)
	return true
}

// plainString cuts head and a string of plain ASCII up to its closing quote off text.
func plainString(text []byte, head string) (s, rest []byte, ok bool) {
	text, ok = bytes.CutPrefix(text, []byte(head))
	if !ok {
		return nil, nil, false
	}
	for i, c := range text {
		switch {
		case c == '"':
			return text[:i], text[i+1:], i > 0
		case c < 0x20 || c >= 0x7f || c == '\\':
			return nil, nil, false
		}
	}
	return nil, nil, false
}
