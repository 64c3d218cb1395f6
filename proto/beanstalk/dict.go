package beanstalk

import (
	"bytes"
	"strings"
)

// The bodies of OK replies are written in a small part of YAML, and only that part is read here: a first line
// "---", then either one "key: value" per line, all at one level, or one "- item" per line. A value goes to the end
// of its line and is text; double quotes around it are taken off, and \" and \\ inside them undone. Anything else
// is a *ProtocolError.

// Pair is one line of a dictionary.
type Pair struct{ Key, Value string }

// ParseDict reads a dictionary, in the server's order.
func ParseDict(body []byte) ([]Pair, error) {
	var out []Pair
	err := eachLine(body, func(line string) bool {
		key, value, ok := strings.Cut(line, ":")
		if !ok || key == "" || key[0] == ' ' || key[0] == '-' || value != "" && value[0] != ' ' {
			return false
		}
		value, ok = unquote(strings.TrimSpace(value))
		out = append(out, Pair{key, value})
		return ok
	})
	return out, err
}

// ParseList reads a list.
func ParseList(body []byte) ([]string, error) {
	var out []string
	err := eachLine(body, func(line string) bool {
		item, ok := strings.CutPrefix(line, "- ")
		if !ok {
			return false
		}
		item, ok = unquote(strings.TrimSpace(item))
		out = append(out, item)
		return ok
	})
	return out, err
}

func eachLine(body []byte, f func(line string) bool) error {
	first := true
	for line := range bytes.Lines(body) {
		text := strings.TrimRight(string(line), "\r\n")
		if first {
			if text != "---" {
				return fault(line, "body does not begin with ---")
			}
			first = false
			continue
		}
		if text != "" && !f(text) {
			return fault(line, "line of a body is not understood")
		}
	}
	if first {
		return fault(nil, "body is empty")
	}
	return nil
}

// unquote takes off double quotes that surround a value. False: they do not match.
func unquote(s string) (string, bool) {
	if s == "" || s[0] != '"' {
		return s, true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			return b.String(), i == len(s)-1
		case '\\':
			if i++; i == len(s) {
				return "", false
			}
			if s[i] != '"' && s[i] != '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}
