"""The metric catalogue: each metric is a function of a summed statistic (or of weighted values), loaded by name."""

from __future__ import annotations

from sonogauge._registry import Registry
from sonogauge.metrics.base import Metric, MetricFunction

METRICS: Registry[MetricFunction] = Registry(
    "metric",
    {
        "accuracy": "sonogauge.metrics.choice:accuracy",
        "balanced_accuracy": "sonogauge.metrics.choice:balanced_accuracy",
        "macro_precision": "sonogauge.metrics.choice:macro_precision",
        "macro_recall": "sonogauge.metrics.choice:macro_recall",
        "macro_f1": "sonogauge.metrics.choice:macro_f1",
        "rmse_scaled": "sonogauge.metrics.numbers:rmse_scaled",
        "mae_scaled": "sonogauge.metrics.numbers:mae_scaled",
        "std_scaled": "sonogauge.metrics.numbers:std_scaled",
        "bias_scaled": "sonogauge.metrics.numbers:bias_scaled",
        "within_tolerance": "sonogauge.metrics.numbers:within_tolerance",
        "median_error": "sonogauge.metrics.numbers:median_error",
        "accuracy_first": "sonogauge.metrics.places:accuracy_first",
        "accuracy_clear": "sonogauge.metrics.places:accuracy_clear",
        "band_distance": "sonogauge.metrics.places:band_distance",
        "reference_out_of_range": "sonogauge.metrics.places:reference_out_of_range",
        "prediction_out_of_range": "sonogauge.metrics.places:prediction_out_of_range",
        "bleu4": "sonogauge.metrics.text:bleu4",
        "rouge_l": "sonogauge.metrics.text:rouge_l",
        "kappa": "sonogauge.metrics.ordinal:kappa",
        "kappa_linear": "sonogauge.metrics.ordinal:kappa_linear",
        "kappa_quadratic": "sonogauge.metrics.ordinal:kappa_quadratic",
        "grade_error": "sonogauge.metrics.ordinal:grade_error",
        "sensitivity": "sonogauge.metrics.diagnostic:sensitivity",
        "specificity": "sonogauge.metrics.diagnostic:specificity",
        "sensitivity_answered": "sonogauge.metrics.diagnostic:sensitivity_answered",
        "specificity_answered": "sonogauge.metrics.diagnostic:specificity_answered",
        "lr_positive": "sonogauge.metrics.diagnostic:lr_positive",
        "lr_negative": "sonogauge.metrics.diagnostic:lr_negative",
        "ppv": "sonogauge.metrics.diagnostic:ppv",
        "npv": "sonogauge.metrics.diagnostic:npv",
        "rmse": "sonogauge.metrics.agreement:rmse",
        "mae": "sonogauge.metrics.agreement:mae",
        "within_clinical": "sonogauge.metrics.agreement:within_clinical",
        "bias": "sonogauge.metrics.agreement:bias",
        "loa_low": "sonogauge.metrics.agreement:loa_low",
        "loa_high": "sonogauge.metrics.agreement:loa_high",
        "icc": "sonogauge.metrics.agreement:icc",
        "pearson": "sonogauge.metrics.correlation:pearson",
        "spearman": "sonogauge.metrics.correlation:spearman",
        "auroc": "sonogauge.metrics.probability:auroc",
        "average_precision": "sonogauge.metrics.probability:average_precision",
        "brier": "sonogauge.metrics.probability:brier",
        "ece": "sonogauge.metrics.probability:ece",
        "bleu_sacre": "sonogauge.metrics.sacre:bleu_sacre",
        "rouge_l_beta1": "sonogauge.metrics.text:rouge_l_beta1",
        "bertscore": "sonogauge.metrics.bertscore:bertscore",
        "fact_precision": "sonogauge.metrics.clinical.scores:fact_precision",
        "fact_recall": "sonogauge.metrics.clinical.scores:fact_recall",
        "fact_f1": "sonogauge.metrics.clinical.scores:fact_f1",
        "detail_recall": "sonogauge.metrics.clinical.scores:detail_recall",
        "negation_error_rate": "sonogauge.metrics.clinical.scores:negation_error_rate",
        "side_error_rate": "sonogauge.metrics.clinical.scores:side_error_rate",
        "place_error_rate": "sonogauge.metrics.clinical.scores:place_error_rate",
        "size_error_rate": "sonogauge.metrics.clinical.scores:size_error_rate",
        "grade_error_rate": "sonogauge.metrics.clinical.scores:grade_error_rate",
        "hallucinated_per_report": "sonogauge.metrics.clinical.scores:hallucinated_per_report",
        "missed_per_report": "sonogauge.metrics.clinical.scores:missed_per_report",
        "missing_sections_per_report": "sonogauge.metrics.clinical.scores:missing_sections_per_report",
    },
    group="sonogauge.metrics",
)


def load_metric(name: str, modality: str = "ultrasound") -> Metric:
    """Return the metric called `name`.

    Raises:
        BadInput: no such metric, with the known names; or not one for this modality, with the reason.

    >>> load_metric("accuracy").direction
    'up'
    """
    from sonogauge.metrics.clinical.modality import refuse_modality

    refuse_modality(name, modality)
    return METRICS.load(name).metric


__all__ = ["METRICS", "Metric", "MetricFunction", "load_metric"]
