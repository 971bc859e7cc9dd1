// Package scheme contains the Kubernetes types that the chart's objects may have.
package scheme

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Scheme contains all types that AddToScheme adds.
var Scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}

// AddToScheme adds all types to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	return errors.Join(appsv1.AddToScheme(s), autoscalingv2.AddToScheme(s), corev1.AddToScheme(s), networkingv1.AddToScheme(s), policyv1.AddToScheme(s))
}
