"""SAM models with tiny random weights: no download, and nothing about how well they see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.shared import require_extra

from sonogauge._errors import BadInput
from sonogauge.models.segmenters import UnsupportedPrompt, load_segmenter

pytestmark = [pytest.mark.part("segmenters"), pytest.mark.filterwarnings("ignore")]
IMAGE = np.random.default_rng(0).integers(0, 255, (40, 60), dtype=np.uint8)
SMALL: dict[str, Any] = {"hidden_size": 32, "num_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
VISION: dict[str, Any] = {
    "backbone_config": {
        **{"model_type": "sam3_vit_model", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2},
        **{"num_attention_heads": 2, "image_size": 56, "patch_size": 14, "window_size": 2},
        **{"global_attn_indexes": [1], "pretrain_image_size": 28},
    },
    "fpn_hidden_size": 32,
    "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]],
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    torch = require_extra("segment", "torch")
    require_extra("segment", "torchvision")
    transformers = require_extra("segment", "transformers")
    root = tmp_path_factory.mktemp("sam")
    torch.manual_seed(0)
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    words = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{letter}</w>" for letter in letters)]
    tokenizer = transformers.CLIPTokenizer(vocab={word: number for number, word in enumerate(words)}, merges=[])
    pictures = transformers.Sam3ImageProcessor(size={"height": 56, "width": 56}, mask_size={"height": 16, "width": 16})
    config = transformers.Sam3Config(
        vision_config=VISION,
        text_config={
            **{"model_type": "clip_text_model", "vocab_size": 300, "hidden_size": 32, "intermediate_size": 64},
            **{"num_hidden_layers": 1, "num_attention_heads": 2, "projection_dim": 32, "hidden_act": "gelu"},
            **{"max_position_embeddings": 32, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1},
        },
        geometry_encoder_config=SMALL,
        detr_encoder_config=SMALL,
        detr_decoder_config={**SMALL, "num_queries": 8},
        mask_decoder_config={"hidden_size": 32, "num_attention_heads": 2},
    )
    transformers.Sam3Model(config).save_pretrained(root / "sam3")
    transformers.Sam3Processor(pictures, tokenizer, target_size=56).save_pretrained(root / "sam3")
    tracker = transformers.Sam3TrackerConfig(
        vision_config=VISION,
        prompt_encoder_config={"hidden_size": 32, "image_size": 56, "patch_size": 14},
        mask_decoder_config={
            **{"hidden_size": 32, "mlp_dim": 64, "num_attention_heads": 2, "num_hidden_layers": 1},
            **{"iou_head_hidden_dim": 32, "iou_head_depth": 2},
        },
    )
    transformers.Sam3TrackerModel(tracker).save_pretrained(root / "tracker")
    transformers.Sam3TrackerProcessor(pictures, target_size=56).save_pretrained(root / "tracker")
    return {"sam3": root / "sam3", "sam3-tracker": root / "tracker"}


def test_sam3_finds_instances_of_a_phrase(folders: dict[str, Path]) -> None:
    segmenter = load_segmenter(f"sam3:{folders['sam3']}?device=cpu")
    assert segmenter.capabilities == {"text", "box"} and segmenter.licence == "SAM licence" and segmenter.weights_id
    every = segmenter.segment(IMAGE, text="lesion", top_k=None)
    scores = [one.score for one in every]
    assert 1 < len(every) <= 8 and scores == sorted(scores, reverse=True)
    assert {one.mask.shape for one in every} == {(40, 60)}
    first = segmenter.segment(np.repeat(IMAGE[..., None], 3, axis=2), text="lesion")
    assert len(first) == 1 and np.array_equal(first[0].mask, every[0].mask)
    assert segmenter.segment(IMAGE, text="lesion", score_threshold=0.99) == []
    assert len(segmenter.segment(IMAGE, text="a very long phrase " * 20, boxes=[(2, 2, 20, 20)], top_k=2)) == 2
    with pytest.raises(UnsupportedPrompt):
        segmenter.segment(IMAGE, points=[(3, 3)])


def test_sam3_tracker_draws_one_object_for_each_prompt(folders: dict[str, Path]) -> None:
    segmenter = load_segmenter(f"sam3-tracker:{folders['sam3-tracker']}?device=cpu")
    boxes = [(5.0, 5.0, 20.0, 20.0), (30.0, 5.0, 50.0, 30.0)]
    both = segmenter.segment(IMAGE, boxes=boxes)
    alone = [segmenter.segment(IMAGE, boxes=[box])[0] for box in boxes]
    assert [np.array_equal(one.mask, other.mask) for one, other in zip(both, alone, strict=True)] == [True, True]
    several = segmenter.segment(IMAGE, points=[(5, 5), (9, 9)], point_labels=[1, 0], top_k=None)
    assert len(several) == 3 and all(one.score is not None for one in several)
    with pytest.raises(UnsupportedPrompt):
        segmenter.segment(IMAGE, text="lesion")


def test_a_folder_without_weights_is_bad_input(folders: dict[str, Path], tmp_path: Path) -> None:
    for name in (f"sam3:{tmp_path}", f"sam3-tracker:{tmp_path}", f"sam3:{folders['sam3']}?device=warp"):
        with pytest.raises(BadInput):
            load_segmenter(name)
