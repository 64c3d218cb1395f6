package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fdengine/fullduplex/pool"
	"github.com/fdengine/fullduplex/proto/resp"
)

// restorePiece is how many subscriptions are asked for before their confirmations are read.
const restorePiece = 256

// restore subscribes a new connection to all that was confirmed on the one before, ahead of any command. Messages
// that come meanwhile are left for the session's reader. It is pool.Options.OnConnect.
func (s *Subscription) restore(_ context.Context, c *pool.Conn) error {
	s.mu.Lock()
	var topics []topic
	for t, confirmed := range s.mu.want {
		if confirmed {
			topics = append(topics, t)
		}
	}
	s.mu.Unlock()
	if len(topics) > 0 {
		limit := s.client.options.Engine.MaxReply
		if limit == 0 {
			limit = resp.DefaultBulk
		}
		w := wire{conn: c, scan: resp.NewScanner(resp.Limits{}), buf: c.Unread, limit: limit}
		var early []byte
		for from := 0; from < len(topics); from += restorePiece {
			var err error
			if early, err = w.subscribe(topics[from:min(from+restorePiece, len(topics))], early); err != nil {
				return err
			}
		}
		c.Unread = append(early, w.rest()...)
	}
	now := time.Now()
	s.mu.Lock()
	lost, cause := s.mu.lost, s.mu.cause
	s.mu.heard, s.mu.lost, s.mu.cause = now, time.Time{}, nil
	s.mu.Unlock()
	if !lost.IsZero() {
		s.box.miss(Missed{From: lost, To: now, Cause: cause})
	}
	return nil
}

// subscribe asks for topics and reads their confirmations. The messages among them are added to early.
func (w *wire) subscribe(topics []topic, early []byte) ([]byte, error) {
	var req []byte
	for _, t := range topics {
		verb, _ := t.form.verbs()
		req = appendTopic(req, verb, t.name)
	}
	if _, err := w.conn.Write(req); err != nil {
		return nil, err
	}
	for _, t := range topics {
		verb, _ := t.form.verbs()
		for {
			frame, kind, err := w.frame()
			if err != nil {
				return nil, fmt.Errorf("redis: restoring a subscription: %w", err)
			}
			if confirms(frame, verb, t.name) {
				break
			}
			if e := errorOf(frame); e != nil {
				return nil, fatal(verb, e)
			}
			if n := noticeOf(frame); kind != resp.Push && n != isMessage && n != isPatternMessage {
				return nil, errMixed
			}
			early = append(early, frame...)
		}
	}
	return early, nil
}

var errMixed = errors.New("redis: restoring a subscription: something else was answered")
