package helm

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	chartAt   = "../../deploy/helm"
	release   = "bot"
	namespace = "chat"
)

// kubernetes returns the Kubernetes version that charts are rendered for. The chart requires an older one, whose
// types have the same fields.
func kubernetes(t testing.TB) *common.KubeVersion {
	t.Helper()
	version, err := common.ParseKubeVersion("1.34.0")
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// A tree is a part of the values, as YAML.
type tree = map[string]any

// load returns the chart, which the test may change.
func load(t testing.TB) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartAt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// values parses values from YAML.
func values(t testing.TB, text string) tree {
	t.Helper()
	var all tree
	if err := yaml.UnmarshalStrict([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// An object is an object that Kubernetes would get.
type object struct {
	metav1.Object
	kind    string
	decoded runtime.Object
	text    string
}

// A rendering is the result of rendering the chart with values.
type rendering struct {
	objects []object
	notes   string
}

// render renders the chart with Helm and decodes each object into its Kubernetes type. Unknown and duplicate fields
// are errors.
func render(t testing.TB, c *chart.Chart, given tree) (rendering, error) {
	t.Helper()
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *kubernetes(t)
	all, err := commonutil.ToRenderValues(c, given, common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return rendering{}, err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return rendering{}, err
	}
	var made rendering
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			made.notes = files[name]
			continue
		}
		for _, text := range regexp.MustCompile(`(?m)^---$`).Split(files[name], -1) {
			if strings.TrimSpace(text) == "" {
				continue
			}
			o, err := decode(text)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
				continue
			}
			made.objects = append(made.objects, o)
		}
	}
	return made, errors.Join(errs...)
}

// decode decodes an object.
func decode(text string) (object, error) {
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return object{}, err
	}
	var is metav1.TypeMeta
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &is); err != nil {
		return object{}, err
	}
	decoded, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(is.APIVersion, is.Kind))
	if err != nil {
		return object{}, err
	}
	strict, err := json.UnmarshalStrict(raw, decoded)
	if err := errors.Join(append(strict, err)...); err != nil {
		return object{}, fmt.Errorf("%s: %w", is.Kind, err)
	}
	about, ok := decoded.(metav1.Object)
	if !ok {
		return object{}, fmt.Errorf("%s has no metadata", is.Kind)
	}
	return object{Object: about, kind: is.Kind, decoded: decoded, text: text}, nil
}

// having returns the objects of one type.
func having[T runtime.Object](r rendering) (all []T) {
	for _, o := range r.objects {
		if is, ok := o.decoded.(T); ok {
			all = append(all, is)
		}
	}
	return all
}
