package tunnel

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// protocolName is the protocol that both ends negotiate, so that their signatures are useless elsewhere.
const protocolName = "parley.tunnel.1"

// tlsConfig returns the configuration for TLS 1.3. Each end has a certificate that contains only its key, and accepts
// the other's key if expects returns nil. Nothing is resumed or sent early, so nothing can be replayed.
func tlsConfig(own ed25519.PrivateKey, expects func(key ed25519.PublicKey) error) (*tls.Config, error) {
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0)} // devices may have no clock
	raw, err := x509.CreateCertificate(rand.Reader, form, form, own.Public(), own)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocolName}, SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
		Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: own}}, ClientAuth: tls.RequireAnyClientCert,
		InsecureSkipVerify: true, //nolint:gosec // no authority knows these keys: VerifyConnection compares them
		VerifyConnection: func(state tls.ConnectionState) error {
			key, err := keyOf(state)
			if err != nil {
				return err
			}
			return expects(key)
		},
	}, nil
}

// keyOf returns the key that the other end has proved to have.
func keyOf(state tls.ConnectionState) (ed25519.PublicKey, error) {
	if state.NegotiatedProtocol != protocolName || len(state.PeerCertificates) == 0 {
		return nil, errors.New("the other end doesn't speak the protocol of nodes")
	}
	key, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("the other end has a key of another kind")
	}
	return bytes.Clone(key), nil
}
