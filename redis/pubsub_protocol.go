package redis

import (
	"github.com/fdengine/fullduplex/fdengine"
	"github.com/fdengine/fullduplex/proto/resp"
)

// pubsubProtocol tells what a connection with subscriptions receives apart: a confirmation answers its command,
// a message answers nothing, in either version of the protocol.
type pubsubProtocol struct{ *protocol }

// Next implements fdengine.Protocol.
func (p pubsubProtocol) Next(buf []byte) (n, need int, kind fdengine.Kind, err error) {
	n, need, kind, err = p.protocol.Next(buf)
	if err != nil || n == 0 || kind == fdengine.KindRefusal {
		return n, need, kind, err
	}
	switch noticeOf(buf[:n]) {
	case notNotice:
	case isConfirmation:
		kind = fdengine.KindReply
	default:
		kind = fdengine.KindPush
	}
	return n, need, kind, nil
}

// notice is what a frame on a connection with subscriptions is about.
type notice uint8

const (
	notNotice notice = iota // its own type says what it is
	isConfirmation
	isMessage
	isPatternMessage
)

// noticeOf looks at the first word of an array or push.
func noticeOf(frame []byte) notice {
	r := resp.NewReader(frame)
	n, err := r.Array()
	if err != nil || n < 3 {
		return notNotice
	}
	word, err := r.Bytes()
	if err != nil {
		return notNotice
	}
	switch string(word) {
	case "message", "smessage":
		return isMessage
	case "pmessage":
		return isPatternMessage
	case "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe":
		return isConfirmation
	}
	return notNotice
}

// readMessage decodes a message; channel and pattern still alias frame.
func readMessage(frame []byte, kind notice) (pattern, channel, payload []byte, err error) {
	r := resp.NewReader(frame)
	if _, err = r.Array(); err == nil {
		err = r.Skip()
	}
	if err == nil && kind == isPatternMessage {
		pattern, err = r.Bytes()
	}
	if err == nil {
		channel, err = r.Bytes()
	}
	if err == nil {
		payload, err = r.Bytes()
	}
	return pattern, channel, payload, err
}

// confirms says whether frame confirms that command on that channel.
func confirms(frame []byte, verb, channel string) bool {
	r := resp.NewReader(frame)
	if n, err := r.Array(); err != nil || n != 3 {
		return false
	}
	word, err := r.Bytes()
	if err != nil || string(word) != verb {
		return false
	}
	name, err := r.Bytes()
	return err == nil && string(name) == channel
}
