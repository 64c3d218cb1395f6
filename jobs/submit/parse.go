package submit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Format says how a line becomes a job.
type Format uint8

const (
	FormatAuto   Format = iota // NDJSON when the first line that is not blank begins with {, else Lines
	FormatNDJSON               // an object with payload (any JSON), id (string or number) and queue (string)
	FormatLines                // the line is the payload
)

// ParseFormat reads the name of a format.
func ParseFormat(s string) (Format, error) {
	for f, name := range []string{"auto", "ndjson", "lines"} {
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

var errNoPayload = errors.New(`no field "payload" (--format lines submits lines as they are)`)

// looseObject reads any spelling of a job object. Fields it does not know are an error: a job that silently
// loses a field is worse than one that is refused.
func looseObject(text []byte, job *Job) error {
	var o struct {
		ID      json.RawMessage `json:"id"`
		Queue   *string         `json:"queue"`
		Payload json.RawMessage `json:"payload"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return err
	}
	if rest := text[d.InputOffset():]; len(rest) > 0 {
		return fmt.Errorf("%d bytes after the object", len(rest))
	}
	if o.Payload == nil {
		return errNoPayload
	}
	id, err := idText(o.ID)
	if err != nil {
		return err
	}
	job.ID, job.Payload = id, o.Payload
	if o.Queue != nil && *o.Queue != "" {
		job.Queue = []byte(*o.Queue)
	}
	return nil
}

// idText gives the text of an id: a string's content, a number as it is written, nothing for null.
func idText(raw json.RawMessage) ([]byte, error) {
	switch {
	case len(raw) == 0 || raw[0] == 'n':
		return nil, nil
	case raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		if strings.ContainsRune(s, utf8.RuneError) {
			// JSON replaces what is no text by this rune: two ids that differ would become one, and a job would be lost.
			return nil, fmt.Errorf("id %.40q: not valid UTF-8", s)
		}
		return []byte(s), nil
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return raw, nil
	}
	return nil, fmt.Errorf("id %.40s: want a string or a number", raw)
}
