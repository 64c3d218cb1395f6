package redis

import (
	"net"
	"strconv"
	"strings"
)

// maxHost is the longest host name that a redirect may carry, in bytes.
const maxHost = 255

// redirectAddr reads host:port from the last word of a redirect. The port follows the last colon, so bare IPv6
// addresses work; an empty host means the host that answered, which is left empty when it is not known here. The
// result is fit for a dialer otherwise; empty when the message names no usable address.
func redirectAddr(message, host string) string {
	word := message[strings.LastIndexByte(message, ' ')+1:]
	i := strings.LastIndexByte(word, ':')
	if i < 0 {
		return ""
	}
	if port, err := strconv.ParseUint(word[i+1:], 10, 16); err != nil || port == 0 {
		return ""
	}
	if i > 0 {
		host = strings.TrimSuffix(strings.TrimPrefix(word[:i], "["), "]")
	}
	if host == "?" || len(host) > maxHost {
		return ""
	}
	return net.JoinHostPort(host, word[i+1:])
}
