package submit

import (
	"bufio"
	"encoding/json"
	"io"
)

// Note is one line of the report: a job that was not answered well.
type Note struct {
	Line  int64  `json:"line"`
	ID    string `json:"id"`
	Fate  string `json:"fate"` // answered (the server refused it), not sent, maybe executed
	Error string `json:"error"`
}

// notes writes the report. One goroutine.
type notes struct {
	w *bufio.Writer
	e *json.Encoder
}

func newNotes(w io.Writer) *notes {
	b := bufio.NewWriter(w)
	return &notes{w: b, e: json.NewEncoder(b)}
}

func (n *notes) write(t *Ticket) error {
	return n.e.Encode(Note{Line: t.Line, ID: string(t.ID), Fate: t.fate.String(), Error: t.err.Error()})
}

func (n *notes) flush() error { return n.w.Flush() }
