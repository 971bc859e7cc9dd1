package node

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/nodes/wire"
	"parley/tools/plainjson"
)

const (
	joinTimeout = 30 * time.Second
	maxAnswer   = 64 << 10 // the most bytes of a server's answer
	maxName     = 32
)

// DefaultName returns a name for this device, derived from the machine's name.
func DefaultName() string {
	host, err := os.Hostname()
	if err != nil {
		return "node"
	}
	return nameFrom(host)
}

// nameFrom returns a valid name of a node, derived from a host name.
func nameFrom(host string) string {
	host, _, _ = strings.Cut(host, ".")
	name := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(host))
	name = strings.Trim(name, "-")
	return cmp.Or(strings.TrimRight(name[:min(len(name), maxName)], "-"), "node")
}

// Join makes the device of a home join a server, with a code from an owner, and returns the device's public key and
// its name as a node. If it fails, it may be called again with the same code.
func Join(ctx context.Context, home, server, code, name string) (public ed25519.PublicKey, m Membership, err error) {
	address, err := wire.Address(server, wire.JoinPath)
	if err != nil {
		return nil, m, cmp.Or(wrongAddress(err, server), err)
	}
	own := strings.TrimSuffix(address.String(), "/"+wire.JoinPath)
	return join(home, own, func(public ed25519.PublicKey, _ ed25519.PrivateKey) (wire.JoinAnswer, error) {
		return ask(ctx, http.DefaultTransport, address, wire.JoinRequest{Code: code, Name: name, Key: public})
	})
}

// join makes the device of a home join a server by calling ask, and stores the membership.
func join(home, server string, ask func(ed25519.PublicKey, ed25519.PrivateKey) (wire.JoinAnswer, error)) (public ed25519.PublicKey, m Membership, err error) {
	unlock, err := lock(home)
	if err != nil {
		return nil, m, err
	}
	defer unlock()
	key, err := makeKey(home)
	if err != nil {
		return nil, m, err
	}
	public = key.Public().(ed25519.PublicKey) //nolint:forcetypeassert // documented to be of this type
	answer, err := ask(public, key)
	if err != nil {
		return nil, m, err
	}
	m = Membership{Server: server, Name: answer.Name, ServerKey: answer.Key}
	if err := plainjson.ReplaceFile(filepath.Join(home, membershipFile), m); err != nil {
		return nil, m, fmt.Errorf("write what the node knows of its server: %w", err)
	}
	return public, m, nil
}

// ask asks the server to let the device join. It follows no redirect, because the code is meant for this address.
func ask(ctx context.Context, over http.RoundTripper, address *url.URL, asked wire.JoinRequest) (answer wire.JoinAnswer, err error) {
	body, err := plainjson.Marshal(asked)
	if err != nil {
		return answer, fmt.Errorf("encode the request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return answer, fmt.Errorf("make the request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: over, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	w, err := client.Do(r)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return answer, fmt.Errorf(textUnreachable, address.Host, failed.Err)
	}
	if err != nil {
		return answer, fmt.Errorf(textUnreachable, address.Host, err)
	}
	defer func() { _ = w.Body.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(w.Body, maxAnswer))
	if err != nil {
		return answer, fmt.Errorf(textUnreachable, address.Host, err)
	}
	if w.StatusCode != http.StatusOK {
		return answer, refusal(w, raw, asked.Name)
	}
	if json.Unmarshal(raw, &answer) != nil || answer.Name == "" || len(answer.Key) != ed25519.PublicKeySize {
		return answer, fmt.Errorf(textNoServer, address.Host)
	}
	return answer, nil
}

// refusal returns an error that says why a server does not let the device join.
func refusal(w *http.Response, raw []byte, name string) error {
	var said struct {
		Error struct{ Code, Message string }
	}
	isOurs := json.Unmarshal(raw, &said) == nil && said.Error.Message != ""
	switch {
	case !isOurs && w.StatusCode >= 300 && w.StatusCode < 400:
		return fmt.Errorf(textRedirect, w.Request.URL.Host, tools.OneLine(w.Header.Get("Location")))
	case !isOurs, w.StatusCode == http.StatusNotFound:
		return fmt.Errorf(textNoNodes, w.Request.URL.Host, w.StatusCode)
	case said.Error.Code == wire.RefusedCode:
		return errors.New(textWrongCode)
	case said.Error.Code == wire.RefusedName:
		return fmt.Errorf(textTaken, name)
	case said.Error.Code == wire.RefusedForm:
		return fmt.Errorf(textBadName, name)
	}
	return fmt.Errorf(textRefused, tools.OneLine(said.Error.Message))
}
