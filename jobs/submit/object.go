package submit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

var errNoPayload = errors.New(`no field "payload" (--format lines submits lines as they are)`)

// looseObject reads any spelling of a job object. Fields it does not know are an error, other letter case included,
// and so are fields that come twice: a job that silently loses a field is worse than one that is refused.
func looseObject(text []byte, job *Job) error {
	o, err := fieldsOf(text)
	if err != nil {
		return err
	}
	if o.payload == nil {
		return errNoPayload
	}
	id, err := idText(o.id)
	if err != nil {
		return err
	}
	queue, err := queueText(o.queue)
	if err != nil {
		return err
	}
	job.ID, job.Payload = id, o.payload
	if len(queue) > 0 {
		job.Queue = queue
	}
	return nil
}

// object is the fields of a job as they are spelled; nil: not there.
type object struct{ id, queue, payload json.RawMessage }

func (o *object) field(name string) *json.RawMessage {
	switch name {
	case "id":
		return &o.id
	case "queue":
		return &o.queue
	case "payload":
		return &o.payload
	}
	return nil
}

// fieldsOf takes one object apart. Nothing may follow it.
func fieldsOf(text []byte) (o object, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	open, err := d.Token()
	if err != nil {
		return o, err
	}
	if open != json.Delim('{') {
		return o, errors.New("not an object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return o, err
		}
		key, ok := name.(string)
		if !ok {
			return o, fmt.Errorf("%v is no name of a field", name)
		}
		into := o.field(key)
		switch {
		case into == nil:
			return o, fmt.Errorf("unknown field %.40q: want id, queue and payload, spelled so", key)
		case *into != nil:
			return o, fmt.Errorf("field %q is there twice", key)
		}
		if err := d.Decode(into); err != nil {
			return o, err
		}
	}
	if _, err := d.Token(); err != nil {
		return o, err
	}
	if rest := text[d.InputOffset():]; len(rest) > 0 {
		return o, fmt.Errorf("%d bytes after the object", len(rest))
	}
	return o, nil
}

// wholeNumber is how a number must be spelled that is an id: 2, 2.0 and 2e0 are one number, and would be three ids.
var wholeNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`) // never written

// idText gives the text of an id: a string's content, a whole number as it is written, nothing for null.
func idText(raw json.RawMessage) ([]byte, error) {
	switch {
	case len(raw) == 0 || raw[0] == 'n':
		return nil, nil
	case raw[0] == '"':
		return plainText("id", raw)
	case wholeNumber.Match(raw):
		return raw, nil
	}
	return nil, fmt.Errorf("id %.40s: want a string or a whole number, without fraction or exponent", raw)
}

// queueText gives the name of a queue, nothing for null.
func queueText(raw json.RawMessage) ([]byte, error) {
	switch {
	case len(raw) == 0 || raw[0] == 'n':
		return nil, nil
	case raw[0] == '"':
		return plainText("queue", raw)
	}
	return nil, fmt.Errorf("queue %.40s: want a string", raw)
}

// plainText gives the content of a JSON string.
func plainText(field string, raw json.RawMessage) ([]byte, error) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	if strings.ContainsRune(s, utf8.RuneError) {
		// JSON replaces what is no text by this rune: two ids that differ would become one, and a job would be lost.
		return nil, fmt.Errorf("%s %.40q: not valid UTF-8", field, s)
	}
	return []byte(s), nil
}
