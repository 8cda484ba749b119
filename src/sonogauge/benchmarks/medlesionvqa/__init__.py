"""MedLesionVQA-style benchmarks: several right answers, fused differentials, open answers, physicians beside."""
