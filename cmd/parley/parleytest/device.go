package parleytest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"parley/tools/nodes"
	"parley/tools/nodes/wire"
)

// A Device is a device that has joined a server as a node. It runs no calls.
type Device struct {
	t     testing.TB
	ended sync.WaitGroup
	leave context.CancelFunc // ends its link
	node  wire.Node
}

// Join makes a device join with a code; if code is empty, Join gets a new one.
func (o *HTTPWorld) Join(name, code string) *Device {
	o.T.Helper()
	if code == "" {
		var invited struct{ Code string }
		Must(o.T, json.Unmarshal([]byte(o.Ask("POST", "/v1/nodes/invite", "", o.OwnerHeader()...).Body), &invited))
		code = invited.Code
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	Must(o.T, err)
	a := o.Ask("POST", "/"+wire.JoinPath, fmt.Sprintf(`{"code":%q,"name":%q,"key":%q}`, code, name, base64.StdEncoding.EncodeToString(public)))
	var joined wire.JoinAnswer
	if err := json.Unmarshal([]byte(a.Body), &joined); err != nil || a.Status != http.StatusOK {
		o.T.Fatalf("the device can't join: %d %s (%v)", a.Status, a.Body, err)
	}
	d := &Device{t: o.T, leave: func() {}, node: wire.Node{Server: o.URL, ServerKey: joined.Key, Name: joined.Name, Key: private}}
	o.T.Cleanup(d.Leave)
	return d
}

// Offer opens a link over which the device offers these tools. It ends the device's previous link.
func (d *Device) Offer(tools ...nodes.Tool) {
	d.t.Helper()
	d.Leave()
	d.node.Offer = nodes.Offer{Tools: tools, Capabilities: []string{"camera"}, Release: "1", Platform: "linux/arm64"}
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := d.node.Dial(ctx)
	if err != nil {
		cancel()
		d.t.Fatal(err)
	}
	d.leave = cancel
	d.ended.Go(func() {
		defer conn.Close()
		for {
			if _, err := conn.Read(ctx); err != nil {
				return
			}
		}
	})
}

// Leave ends the link.
func (d *Device) Leave() {
	d.leave()
	d.ended.Wait()
}

// Key returns the fingerprint of the device's key.
func (d *Device) Key() string {
	return wire.Fingerprint(d.node.Key.Public().(ed25519.PublicKey))
}
