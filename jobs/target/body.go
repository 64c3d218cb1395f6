package target

import (
	"encoding/json"
	"errors"

	"github.com/fdengine/fullduplex/carry"
	"github.com/fdengine/fullduplex/jobs/submit"
)

// body is what of a job goes into a list or a tube, which take one string of bytes.
type body uint8

const (
	bodyPayload body = iota // the payload as it is
	bodyJob                 // id, queue and payload as a JSON object, spelled as in the input
)

// ErrBody refuses a job that cannot be spelled as asked for.
var ErrBody error = bodyError{}

type bodyError struct{}

func (bodyError) Error() string    { return "body=job needs NDJSON input: a plain line is no JSON" }
func (bodyError) Fate() carry.Fate { return carry.NotSent }

func (b body) append(dst []byte, job submit.Job) ([]byte, error) {
	if b == bodyPayload {
		return append(dst, job.Payload...), nil
	}
	if !job.JSON {
		return dst, ErrBody
	}
	dst = appendText(append(dst, `{"id":`...), job.ID)
	dst = appendText(append(dst, `,"queue":`...), job.Queue)
	dst = append(append(dst, `,"payload":`...), job.Payload...)
	return append(dst, '}'), nil
}

// appendText appends s as a JSON string.
func appendText(dst, s []byte) []byte {
	for _, c := range s {
		if c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			q, _ := json.Marshal(string(s)) // a string can always be
			return append(dst, q...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

var errNoJob = errors.New("no job")

// show calls found with the parts of a body that was read back. What is no job of ours is shown with empty parts.
func (b body) show(data []byte, found func(id, queue, payload []byte)) {
	if b == bodyPayload {
		found(nil, nil, data)
		return
	}
	id, queue, payload, err := takeApart(data)
	if err != nil {
		id, queue, payload = nil, nil, nil
	}
	found(id, queue, payload)
}

// takeApart reads what append wrote.
func takeApart(data []byte) (id, queue, payload []byte, err error) {
	var o struct {
		ID      *string         `json:"id"`
		Queue   *string         `json:"queue"`
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, nil, nil, err
	}
	if o.ID == nil || o.Queue == nil || o.Payload == nil {
		return nil, nil, nil, errNoJob
	}
	return []byte(*o.ID), []byte(*o.Queue), o.Payload, nil
}
