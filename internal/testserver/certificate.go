package testserver

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Certificate is a self-signed one for 127.0.0.1 and localhost, valid for a day.
type Certificate struct {
	Server            *tls.Config // serves it
	Client            *tls.Config // trusts it and nothing else
	CertFile, KeyFile string      // PEM, removed with the test
}

// NewCertificate makes one.
func NewCertificate(tb testing.TB) Certificate {
	tb.Helper()
	must := func(err error) {
		if err != nil {
			tb.Helper()
			tb.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "fullduplex test"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	parsed, err := x509.ParseCertificate(der)
	must(err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	dir := tb.TempDir()
	c := Certificate{
		CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"),
		Server: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		Client: &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"},
	}
	for file, block := range map[string]*pem.Block{
		c.CertFile: {Type: "CERTIFICATE", Bytes: der}, c.KeyFile: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		must(os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	return c
}

// tlsUnsupported starts binary with the TLS arguments and nothing to listen on. A build without TLS ends at once
// and says why; one that can serve it answers on the TLS port and is ended. A missing binary is no answer here.
func tlsUnsupported(tb testing.TB, binary string, args []string) string {
	tb.Helper()
	path, err := exec.LookPath(binary)
	if err != nil {
		return ""
	}
	dir := tb.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	// Bad values are found before anything is served: a directive that does not exist, or a file that does not.
	out, _ := exec.CommandContext(ctx, path, append([]string{
		"--port", "0", "--dir", dir, "--save", "", "--daemonize", "no",
	}, append(args, "--tls-cert-file", filepath.Join(dir, "none.pem"))...)...).CombinedOutput()
	if bytes.Contains(out, []byte("none.pem")) && bytes.Contains(out, []byte("certificate")) {
		return ""
	}
	return string(out)
}
