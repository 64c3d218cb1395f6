package hostile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fdengine/fullduplex/internal/faults/tally"
	"github.com/fdengine/fullduplex/internal/memnet"
)

// pair makes the certificate, once; a year around the fake time of bubbles and the true one do not matter to trusting.
var pair = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server"}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

func certified() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{pair()}, SessionTicketsDisabled: true}
}

// trusting checks no certificate: who the server is, is not what these tests are about.
func trusting() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// Covers: C44, C09
func TestATLSHandshakeThatStopsAnywhereEndsAtTheDialTimeoutAndCostsNoCommandAnything(t *testing.T) {
	_ = pair()
	for _, k := range kits() {
		t.Run(k.name, func(t *testing.T) {
			for at := int64(0); at < 900; at += int64(tally.Count(150, 5)) {
				for _, ends := range []bool{false, true} {
					a := attack{secure: true, calm: true, within: 5 * time.Second, dial: func(n int, client, _ *memnet.Conn) {
						switch {
						case n > 1:
						case ends:
							client.In().CutAt(at, memnet.Cut{})
						default:
							client.In().StallAt(at)
						}
					}}
					a.run(t, k)
				}
			}
		})
	}
}

// Covers: C44, C18, S0-30
func TestATLSRecordThatStopsAnywhereDeliversNoPartOfAReply(t *testing.T) {
	_ = pair()
	for _, k := range kits() {
		t.Run(k.name, func(t *testing.T) {
			for at := int64(1); at < 30; at += int64(tally.Count(4, 1)) {
				for _, ends := range []bool{false, true} {
					a := attack{secure: true, within: 5 * time.Second, evil: func(v *visit, r request, _ *meter) {
						if out := v.raw.Out(); ends {
							out.CutAfter(at, memnet.Cut{})
						} else {
							out.StallAt(out.Accepted() + at)
						}
						v.say(r.answer)
					}}
					a.check = late
					if ends {
						a.check = maybe
					}
					a.run(t, k)
				}
			}
		})
	}
}

// Covers: C44
func TestAPlainServerBehindTLSIsAFailedDial(t *testing.T) {
	a := attack{secure: true, calm: true, within: time.Second}
	a.dial = func(n int, _, server *memnet.Conn) {
		if n == 1 {
			_, err := server.Write([]byte("-ERR this is no TLS, go away\r\n"))
			require.NoError(t, err)
		}
	}
	for _, k := range kits() {
		t.Run(k.name, func(t *testing.T) { a.run(t, k) })
	}
}
