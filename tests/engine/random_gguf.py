#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a small language model of the Llama architecture with random weights, as GGUF version 3:
an engine loads and runs it like any other; the words mean nothing.

    random_gguf.py FILE [--width 256] [--layers 2] [--seed 1]
"""

import argparse
import random
import struct

HEAD_WIDTH = 64
WORDS = 765  # beside three control tokens and 256 bytes: 1024 in all
ALIGNMENT = 32  # GGUF's default

# Types of metadata values and of tensors, as GGUF numbers them.
UINT32, INT32, FLOAT32, STRING, ARRAY = 4, 5, 6, 8, 9
F32, F16 = 0, 1
BYTES = {F32: 4, F16: 2}


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def encoded(kind, value):
    if kind == STRING:
        return text(value)
    return struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f"}[kind], value)


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + encoded(kind, value)


def array(key, kind, values):
    head = struct.pack("<IIQ", ARRAY, kind, len(values))
    return text(key) + head + b"".join(encoded(kind, value) for value in values)


def vocabulary():
    """(token, type) with the types of a SentencePiece vocabulary."""
    unknown, control, byte, normal = 2, 3, 6, 1
    yield from (("<unk>", unknown), ("<s>", control), ("</s>", control))
    yield from ((f"<0x{value:02X}>", byte) for value in range(256))
    yield from ((f"\u2581w{number}", normal) for number in range(WORDS))


def metadata(width, layers):
    tokens, kinds = zip(*vocabulary())
    heads = width // HEAD_WIDTH
    numbers = {
        "llama.context_length": 4096, "llama.embedding_length": width,
        "llama.block_count": layers, "llama.feed_forward_length": 3 * width,
        "llama.attention.head_count": heads, "llama.attention.head_count_kv": heads,
        "llama.rope.dimension_count": HEAD_WIDTH, "llama.vocab_size": len(tokens),
        "general.file_type": F16, "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
    }
    return [
        entry("general.architecture", STRING, "llama"),
        entry("general.name", STRING, "random"),
        entry("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        entry("tokenizer.ggml.model", STRING, "llama"),
        array("tokenizer.ggml.tokens", STRING, tokens),
        array("tokenizer.ggml.scores", FLOAT32, [-float(i) for i in range(len(tokens))]),
        array("tokenizer.ggml.token_type", INT32, kinds),
        *(entry(key, UINT32, value) for key, value in numbers.items()),
    ], len(tokens)


def tensors(width, layers, tokens):
    """(name, shape, type): the innermost dimension first."""
    yield "token_embd.weight", (width, tokens), F16
    yield "output_norm.weight", (width,), F32
    yield "output.weight", (width, tokens), F16
    for layer in range(layers):
        block = f"blk.{layer}."
        for norm in ("attn_norm", "ffn_norm"):
            yield f"{block}{norm}.weight", (width,), F32
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"{block}{part}.weight", (width, width), F16
        for part in ("ffn_gate", "ffn_up"):
            yield f"{block}{part}.weight", (width, 3 * width), F16
        yield f"{block}ffn_down.weight", (3 * width, width), F16


def weights(count, kind, dice):
    if kind == F32:  # a norm's factors
        return struct.pack("<f", 1.0) * count
    # Sign and mantissa are random, the exponent is not: 2^-6 to 2^-5, whatever the layer.
    keep = int.from_bytes(b"\xff\x83" * count, "little")
    exponent = int.from_bytes(b"\x00\x24" * count, "little")
    return ((dice.getrandbits(16 * count) & keep) | exponent).to_bytes(2 * count, "little")


def padding(size):
    return b"\0" * (-size % ALIGNMENT)


def write(file, width, layers, dice):
    entries, tokens = metadata(width, layers)
    listed, offset, described = list(tensors(width, layers, tokens)), 0, []
    sizes = []
    for name, shape, kind in listed:
        count = 1
        for dimension in shape:
            count *= dimension
        sizes.append(count)
        described.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind,
                                                  offset))
        offset += count * BYTES[kind] + len(padding(count * BYTES[kind]))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(entries))
    head += b"".join(entries) + b"".join(described)
    file.write(head + padding(len(head)))
    for (_, _, kind), count in zip(listed, sizes):
        data = weights(count, kind, dice)
        file.write(data + padding(len(data)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--width", type=int, default=256, help="a multiple of 64")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.width < HEAD_WIDTH or chosen.width % HEAD_WIDTH or chosen.layers < 1:
        parser.error("--width is a multiple of 64, --layers at least 1")
    with open(chosen.file, "wb") as file:
        write(file, chosen.width, chosen.layers, random.Random(chosen.seed))


if __name__ == "__main__":
    main()
