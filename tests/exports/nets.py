"""Small nets with random weights, as people export them: what each takes, which extents are open, and at which it is run."""

import dataclasses
from typing import Callable

import torch
from torch import nn


@dataclasses.dataclass
class Net:
    name: str
    build: Callable[[], nn.Module]
    inputs: dict  # name -> (kind, dims); a dim that is a string is open
    export: dict  # extents at export
    runs: list  # extents of the three runs

    def tensors(self, extents, seed):
        """Inputs at these extents, by name."""
        generator = torch.Generator().manual_seed(seed)
        made = {}
        for name, (kind, dims) in self.inputs.items():
            shape = [extents[d] if isinstance(d, str) else d for d in dims]
            if kind == "float":
                made[name] = torch.randn(shape, generator=generator)
            elif kind == "mask":  # the last third of all rows but the first is padding
                mask = torch.ones(shape, dtype=torch.int64)
                mask[1:, shape[1] - shape[1] // 3 :] = 0
                made[name] = mask
            else:
                made[name] = torch.randint(1, kind, shape, generator=generator)
        return made


class Call(nn.Module):
    """A model of transformers with positional tensors, and one tensor as its result."""

    def __init__(self, model, names, result):
        super().__init__()
        self.model, self.names, self.result = model, names, result

    def run(self, *tensors):
        return getattr(self.model(**dict(zip(self.names, tensors))), self.result)


class Call1(Call):
    def forward(self, a):
        return self.run(a)


class Call2(Call):
    def forward(self, a, b):
        return self.run(a, b)


class Call3(Call):
    def forward(self, a, b, c):
        return self.run(a, b, c)


class First(nn.Module):
    """The `out` of a segmentation net."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)["out"]


def transformer(kind, config, names, result="last_hidden_state", **options):
    def build():
        import transformers

        settings = dict(config)
        parts = {
            part: getattr(transformers, cls)(**inner)
            for part, (cls, inner) in options.get("parts", {}).items()
        }
        made = getattr(transformers, kind[0])(**settings, **parts)
        made.use_cache = False
        made._attn_implementation = "eager"
        return (Call1, Call2, Call3)[len(names) - 1](getattr(transformers, kind[1])(made), names, result)

    return build


def vision(name, **options):
    def build():
        import torchvision

        return getattr(torchvision.models, name)(weights=None, **options)

    return build


def small_vit():
    import torchvision

    return torchvision.models.VisionTransformer(
        image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64, num_classes=10
    )


def segmentation(name):
    def build():
        import torchvision

        return First(
            getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None, num_classes=4)
        )

    return build


BERT = dict(
    vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
    max_position_embeddings=64,
)  # fmt: skip
DECODER = dict(BERT, num_key_value_heads=2)
TEXT = dict(export={"batch": 2, "seq": 9}, runs=[{"batch": 1, "seq": 1}, {"batch": 3, "seq": 17}, {"batch": 1, "seq": 40}])
IDS = {"input_ids": (50, ("batch", "seq"))}
MASKED = {**IDS, "attention_mask": ("mask", ("batch", "seq"))}
PAIR = ("input_ids", "attention_mask")
BATCH = dict(export={"batch": 2}, runs=[{"batch": 1}, {"batch": 3}, {"batch": 5}])
SIZED = dict(
    export={"batch": 2, "h": 64, "w": 96},
    runs=[{"batch": 1, "h": 96, "w": 64}, {"batch": 3, "h": 64, "w": 64}, {"batch": 1, "h": 100, "w": 75}],
)
WAVE = dict(export={"batch": 2, "n": 800}, runs=[{"batch": 1, "n": 640}, {"batch": 3, "n": 1111}, {"batch": 1, "n": 2000}])


def picture(h="h", w="w"):
    return {"x": ("float", ("batch", 3, h, w))}


# --- custom nets
class ConvMixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 7), nn.GELU(), nn.BatchNorm2d(16))
        self.mix = nn.ModuleList(
            nn.Sequential(nn.Conv2d(16, 16, 5, groups=16, padding="same"), nn.GELU(), nn.BatchNorm2d(16))
            for _ in range(2)
        )
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.mix:
            x = x + layer(x)
        return self.head(x.mean((2, 3)))


class UNet(nn.Module):
    """Upsamples to the size of what it is joined with, so that odd sizes work."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)])
        self.middle = nn.Conv2d(16, 16, 3, padding=1)
        self.up = nn.ModuleList([nn.Conv2d(32, 8, 3, padding=1), nn.Conv2d(16, 4, 3, padding=1)])

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = torch.relu(layer(x))
            kept.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = torch.relu(self.middle(x))
        for layer in self.up:
            beside = kept.pop()
            x = nn.functional.interpolate(x, size=beside.shape[2:], mode="bilinear")
            x = torch.relu(layer(torch.cat([x, beside], 1)))
        return x


class AudioNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.frames = nn.Conv1d(1, 16, 400, 160, padding=200)
        self.body = nn.Sequential(nn.ReLU(), nn.Conv1d(16, 16, 3, padding=1, groups=4), nn.ReLU())
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.body(self.frames(x.unsqueeze(1))).transpose(1, 2))


class Tagger(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.embed = nn.Embedding(50, 12)
        self.rnn = cell(12, 10, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(20, 6)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


class CausalConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(4, 4, 3, dilation=2**i) for i in range(3))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = x + torch.relu(layer(nn.functional.pad(x, (2 * 2**i, 0))))
        return x[:, :, -1]


class Spectrum(nn.Module):
    """Frames by unfolding, a Fourier transform by a product, the mean over at most 8 frames."""

    def __init__(self):
        super().__init__()
        angle = 2 * torch.pi * torch.outer(torch.arange(33), torch.arange(64)) / 64
        self.register_buffer("basis", torch.cat([angle.cos(), angle.sin()]).T.contiguous())
        self.head = nn.Linear(33, 5)

    def forward(self, x):
        frames = x.unfold(1, 64, 32)
        real, imaginary = (frames @ self.basis).chunk(2, -1)
        return self.head((real**2 + imaginary**2).sqrt()[:, :8].mean(1))


class Stft(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.head = nn.Linear(33, 5)

    def forward(self, x):
        spectrum = torch.stft(x, 64, 32, window=self.window, center=False, return_complex=False, onesided=True)
        return self.head(spectrum.pow(2).sum(-1).transpose(1, 2))


class Windows(nn.Module):
    """Attention within windows of 16, padded to a multiple of them."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)

    def forward(self, x):
        b, n, c = x.shape
        x = nn.functional.pad(x, (0, 0, 0, (16 - n % 16) % 16))
        q, k, v = self.qkv(x).view(b, -1, 16, 3 * c).chunk(3, -1)
        mixed = torch.softmax(q @ k.transpose(-1, -2) / c**0.5, -1) @ v
        return self.out(mixed.reshape(b, -1, c))[:, :n]


class Pyramid(nn.Module):
    """Features of three scales, joined in the size of the first."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(nn.Conv2d(3 if i == 0 else 8, 8, 3, 2, 1) for i in range(3))
        self.side = nn.ModuleList(nn.Conv2d(8, 8, 1) for _ in range(3))

    def forward(self, x):
        features = []
        for stage in self.stages:
            x = torch.relu(stage(x))
            features.append(x)
        y = self.side[2](features[2])
        for i in (1, 0):
            y = self.side[i](features[i]) + nn.functional.interpolate(y, size=features[i].shape[-2:], mode="nearest")
        return y


class Sequence(nn.Module):
    """torch's own encoder, with positions computed from the length."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids):
        n = ids.shape[1]
        at = torch.arange(n, dtype=torch.float32).unsqueeze(1) / 10000 ** (torch.arange(8) / 8)
        x = self.embed(ids) + torch.cat([at.sin(), at.cos()], 1)
        mask = torch.full((n, n), float("-inf")).triu(1)
        return self.encoder(x, mask=mask)


class PixelShuffle(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.PReLU(), nn.Conv2d(16, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x):
        return self.layers(x)


class Rescaled(nn.Module):
    """Scale factors that leave extents which are not whole; corners aligned, and not."""

    def forward(self, x):
        resize = nn.functional.interpolate
        y = resize(x, scale_factor=1.7, mode="bilinear", align_corners=True)
        return resize(resize(y, scale_factor=0.7, mode="bilinear"), scale_factor=0.9, mode="bicubic", align_corners=True)


class Warp(nn.Module):
    """Positions around the image, filtered with what lies at its border."""

    def forward(self, x):
        at = torch.stack([x[:, 0], x[:, 1]], -1)
        return nn.functional.grid_sample(x, at, mode="bicubic", padding_mode="border", align_corners=False)


class RealFourier(nn.Module):
    """Squares of the frequencies of the whole signal."""

    def forward(self, x):
        return torch.view_as_real(torch.fft.rfft(x, dim=1)).square().sum(-1)


FRAMES = {"x": ("float", ("batch", "n"))}
ROWS = dict(export={"batch": 2, "n": 40}, runs=[{"batch": 1, "n": 16}, {"batch": 3, "n": 37}, {"batch": 1, "n": 100}])
WHISPER = dict(
    vocab_size=50, num_mel_bins=8, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
    decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_source_positions=20,
    max_target_positions=48, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    suppress_tokens=None, begin_suppress_tokens=None,
)  # fmt: skip
WAV2VEC = dict(
    BERT, conv_dim=(16, 16), conv_kernel=(10, 3), conv_stride=(5, 2), num_feat_extract_layers=2,
    num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2,
)  # fmt: skip
CLIP_SIDE = dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=48)
VIT = dict(CLIP_SIDE, image_size=32, patch_size=8)
SIZE32 = {"pixel_values": ("float", ("batch", 3, 32, 32))}

NETS = [
    Net("bert", transformer(("BertConfig", "BertModel"), BERT, PAIR), MASKED, **TEXT),
    Net("distilbert", transformer(("DistilBertConfig", "DistilBertModel"),
        dict(vocab_size=50, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64), PAIR), MASKED, **TEXT),
    Net("roberta", transformer(("RobertaConfig", "RobertaModel"), BERT, PAIR), MASKED, **TEXT),
    Net("albert", transformer(("AlbertConfig", "AlbertModel"), dict(BERT, embedding_size=16), PAIR), MASKED, **TEXT),
    Net("electra", transformer(("ElectraConfig", "ElectraForTokenClassification"), dict(BERT, embedding_size=16), PAIR, "logits"), MASKED, **TEXT),
    Net("gpt2", transformer(("GPT2Config", "GPT2LMHeadModel"),
        dict(vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=64), PAIR, "logits"), MASKED, **TEXT),
    Net("llama", transformer(("LlamaConfig", "LlamaForCausalLM"), DECODER, PAIR, "logits"), MASKED, **TEXT),
    Net("qwen2", transformer(("Qwen2Config", "Qwen2ForCausalLM"), DECODER, PAIR, "logits"), MASKED, **TEXT),
    Net("t5", transformer(("T5Config", "T5EncoderModel"),
        dict(vocab_size=50, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4), PAIR), MASKED, **TEXT),
    Net("t5_decoder", transformer(("T5Config", "T5ForConditionalGeneration"),
        dict(vocab_size=50, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4, decoder_start_token_id=0),
        PAIR + ("decoder_input_ids",), "logits"), {**MASKED, "decoder_input_ids": (50, ("batch", "target"))},
        {"batch": 2, "seq": 9, "target": 4},
        [{"batch": 1, "seq": 5, "target": 1}, {"batch": 3, "seq": 17, "target": 7}, {"batch": 1, "seq": 30, "target": 12}]),
    Net("bart", transformer(("BartConfig", "BartModel"),
        dict(vocab_size=50, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
             decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64), PAIR), MASKED, **TEXT),
    Net("led", transformer(("LEDConfig", "LEDModel"),
        dict(vocab_size=50, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
             encoder_ffn_dim=48, decoder_ffn_dim=48, attention_window=[4], max_encoder_position_embeddings=64,
             max_decoder_position_embeddings=64), PAIR), MASKED, **TEXT),
    Net("mpt", transformer(("MptConfig", "MptForCausalLM"),
        dict(vocab_size=50, d_model=32, n_heads=4, n_layers=2, expansion_ratio=2), PAIR, "logits"), MASKED, **TEXT),
    Net("convbert", transformer(("ConvBertConfig", "ConvBertModel"), dict(BERT, embedding_size=32), PAIR), MASKED, **TEXT),
    Net("vit", transformer(("ViTConfig", "ViTModel"), VIT, ("pixel_values",)), SIZE32, **BATCH),
    Net("deit", transformer(("DeiTConfig", "DeiTModel"), VIT, ("pixel_values",)), SIZE32, **BATCH),
    Net("swin_hf", transformer(("SwinConfig", "SwinModel"),
        dict(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4), ("pixel_values",)), SIZE32, **BATCH),
    Net("clip", transformer(("CLIPVisionConfig", "CLIPVisionModel"), VIT, ("pixel_values",)), SIZE32, **BATCH),
    Net("clip_text", transformer(("CLIPTextConfig", "CLIPTextModel"),
        dict(CLIP_SIDE, vocab_size=50, max_position_embeddings=64, eos_token_id=49), PAIR), MASKED, **TEXT),
    Net("segformer", transformer(("SegformerConfig", "SegformerForSemanticSegmentation"),
        dict(hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16),
        ("pixel_values",), "logits"), {"pixel_values": ("float", ("batch", 3, "h", "w"))}, **SIZED),
    Net("whisper", transformer(("WhisperConfig", "WhisperForConditionalGeneration"), WHISPER,
        ("input_features", "decoder_input_ids"), "logits"),
        {"input_features": ("float", ("batch", 8, 40)), "decoder_input_ids": (50, ("batch", "seq"))}, **TEXT),
    Net("wav2vec2", transformer(("Wav2Vec2Config", "Wav2Vec2Model"), WAV2VEC, ("input_values",)),
        {"input_values": ("float", ("batch", "n"))}, **WAVE),
    *(Net(name, vision(name, num_classes=10), picture(), **SIZED) for name in (
        "resnet18", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "shufflenet_v2_x0_5", "squeezenet1_1",
        "convnext_tiny", "regnet_y_400mf", "densenet121", "mnasnet0_5")),
    Net("googlenet", vision("googlenet", num_classes=10, aux_logits=False, init_weights=False), picture(), **SIZED),
    Net("swin_t", vision("swin_t", num_classes=10), picture(), **SIZED),
    Net("vit_small", small_vit, picture(64, 64), **BATCH),
    Net("deeplabv3", segmentation("deeplabv3_mobilenet_v3_large"), picture(), **SIZED),
    Net("fcn", segmentation("fcn_resnet50"), picture(), **SIZED),
    Net("lraspp", segmentation("lraspp_mobilenet_v3_large"), picture(), **SIZED),
    Net("convmixer", ConvMixer, picture(), **SIZED),
    Net("unet", UNet, picture(), **SIZED),
    Net("rescaled", Rescaled, picture(), **SIZED),
    Net("warp", Warp, picture(), **SIZED),
    Net("pyramid", Pyramid, picture(), **SIZED),
    Net("pixel_shuffle", PixelShuffle, picture(), **SIZED),
    Net("audio", AudioNet, FRAMES, **WAVE),
    Net("spectrum", Spectrum, FRAMES, **WAVE),
    Net("stft", Stft, FRAMES, **WAVE),
    Net("fourier", RealFourier, FRAMES, **WAVE),
    Net("lstm", lambda: Tagger(nn.LSTM), {"ids": (50, ("batch", "seq"))}, **TEXT),
    Net("gru", lambda: Tagger(nn.GRU), {"ids": (50, ("batch", "seq"))}, **TEXT),
    Net("tcn", CausalConv, {"x": ("float", ("batch", 4, "n"))}, **ROWS),
    Net("windows", Windows, {"x": ("float", ("batch", "n", 12))}, **ROWS),
    Net("encoder", Sequence, {"ids": (50, ("batch", "seq"))}, **TEXT),
]  # fmt: skip
